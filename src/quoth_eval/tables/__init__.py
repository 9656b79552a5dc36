"""The benchmark of tables: documents whose answers are known, in rows and columns, and places on pages."""
