"""A settings module of the service with other values, for processes that tests start.

`tests.live.with_settings` makes the environment that selects it.
"""

import json
import os
from importlib import import_module
from typing import Any


def _change(values: dict[str, Any], changes: dict[str, Any]) -> None:
    for name, value in changes.items():
        if isinstance(value, dict):
            _change(values[name], value)
        else:
            assert name in values, f"{name} is not a setting"
            values[name] = value


_module, _changes = json.loads(os.environ["CHANGED_SETTINGS"])
globals().update(
    {name: value for name, value in vars(import_module(_module)).items() if name.isupper()}
)
_change(globals(), _changes)
