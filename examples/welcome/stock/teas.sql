-- hob: page
-- title: Teas that steep for no longer than you wait
-- rows: 10
SELECT name, minutes, grams FROM tea WHERE :minutes IS NULL OR minutes <= :minutes ORDER BY minutes, name;
