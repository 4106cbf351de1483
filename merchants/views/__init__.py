"""The pages of the merchant site, with their forms and shared helpers."""
