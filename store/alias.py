"""The package under its second name, for apps that have a ``store.py`` of their own.

Python finds a file ``store.py`` beside an app before the package. The wheel ships this file as
``convostore/__init__.py``: it reads the package's modules from the folder beside it under the new
name, and never imports the name that the app has taken. A program uses one of the two names,
because each name has its own classes.
"""

from pathlib import Path
from typing import TYPE_CHECKING

__path__ = [str(Path(__file__).resolve().parent.parent / "store")]

if TYPE_CHECKING:
    from store import *  # noqa: F403
    from store import __all__
else:
    from .__init__ import __all__, __dir__, __getattr__  # noqa: F401
