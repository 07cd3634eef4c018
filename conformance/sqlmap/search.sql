-- hob: page
SELECT id, title FROM part WHERE title LIKE '%' || :q || '%' ORDER BY id;
