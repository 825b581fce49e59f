"""The engine: asks live processes for windows within a budget. Sizes, grants, awaits, keeps and pairs windows."""
