-- hob: page
-- rows: 50
SELECT id, title FROM part ORDER BY id;
