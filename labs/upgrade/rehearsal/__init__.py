"""An app whose migrations change the tables of a purchase, as a release may do.

The upgrade test applies them besides the new migrations of the service, so it always applies some.
"""
