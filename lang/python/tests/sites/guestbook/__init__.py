"""A guest book: a small Django site with the admin, a form, sessions and uploads."""
