"""Files of codes and of the catalogue: reading, importing, taking back."""
