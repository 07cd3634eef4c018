-- hob: page
SELECT id, title FROM part WHERE id = :id;
