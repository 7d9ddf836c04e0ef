"""The oldest versions that pyproject.toml allows, one constraint of pip a line: what `make compat` installs."""

import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path(__file__).parent.with_name("pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = project["optional-dependencies"]
wanted = [*project["dependencies"], *(one for name in sys.argv[1:] for one in extras[name])]
for one in wanted:
    found = re.match(r"([\w.-]+)(?:\[[\w,]*\])?>=([\d.]+)", one)
    if found:
        print(f"{found[1]}=={found[2]}.*")
