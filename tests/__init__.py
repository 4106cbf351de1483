import sys

# jsonschema loads it to check addresses that are not ASCII, which no document here has. It builds a
# grammar when it is loaded, which takes two seconds of each test process.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
