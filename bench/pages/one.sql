-- hob: page
SELECT id, title, cents FROM part WHERE id = :id;
