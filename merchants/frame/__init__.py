"""Shared by the pages of the merchant site: menu, forms, long lists, and files to download."""
