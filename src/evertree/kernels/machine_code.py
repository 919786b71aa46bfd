"""Where the machine code of a kernel comes from: the library of the package, a folder of objects, or Numba."""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import re
import threading
from functools import cache
from typing import Any

from evertree.errors import MissingExtraError
from evertree.kernels import library, objects
from evertree.kernels.calls import Kernel
from evertree.kernels.columns import PairTree
from evertree.kernels.compile import IS_COMPILED
from evertree.kernels.objects import Target
from evertree.kernels.signatures import Configuration

#: The versions of Numba that are tested: from the first, up to but without the second. As in the extra "jit".
TESTED = ((0, 61, 2), (0, 69))

#: Approximate seconds to compile the kernels of a linkage, on means and on pairs.
_SECONDS = {False: 10, True: 20}

_logger = logging.getLogger("evertree")
_has_told = threading.Event()
_compiling = threading.Lock()


def find(kernel: Kernel, configuration: Configuration) -> int:
    """The address of the machine code of a kernel."""
    symbol = kernel.symbol(configuration)
    shipped = library.opened()
    if shipped is not None and _is_of_package(kernel.py_func) and _is_of_package(configuration.linkage):
        address = shipped.address(symbol)
        if address is not None:
            return address
    with _compiling:
        return compiled(kernel, configuration, symbol)


def _is_of_package(defined: Any) -> bool:
    """Whether a kernel, or a linkage, is one that the library was made with."""
    return defined is None or defined.__module__.startswith("evertree.")


def compiled(kernel: Any, configuration: Configuration, symbol: str) -> int:
    """The address of machine code that Numba has compiled, now or earlier."""
    the_compiler()
    made_for = Target(target(), is_loaded=True)
    stamp = objects.stamp_of(kernel, configuration, made_for)
    code = objects.kept(symbol, stamp)
    if code is None:
        _tell(configuration)
        (code,) = made(kernel, configuration, symbol, [made_for])
        objects.keep(symbol, stamp, code)
    return _loaded(code, symbol, made_for.cpu)


def _loaded(code: bytes, symbol: str, cpu: str) -> int:
    """The address of a function of an object file, which is loaded into this process for good."""
    from llvmlite import binding

    engine = _engine(cpu)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address: int = engine.get_function_address(symbol)
    return address


@cache
def _engine(cpu: str) -> Any:
    """What loads object files."""
    from llvmlite import binding

    return binding.create_mcjit_compiler(binding.parse_assembly(""), the_compiler().target_machine(cpu, True))


def made(kernel: Any, configuration: Configuration, symbol: str, targets: list[Target]) -> list[bytes]:
    """The object files of a kernel for one configuration and some targets."""
    compiler = the_compiler()
    lowered = compiler.lowered(kernel.py_func, kernel.signature, configuration, symbol)
    objects.check_sources(kernel, configuration, compiler.used_steps)
    return [compiler.object_of(lowered, symbol, *made_for, kernel.is_wide) for made_for in targets]


def the_compiler() -> Any:
    """What compiles by Numba, or an error that says how to install it."""
    try:
        import numba

        check_version(numba.__version__)
        from evertree.kernels import numba_compiler
    except ModuleNotFoundError as error:
        if error.name not in ("numba", "llvmlite"):
            raise
        raise MissingExtraError(
            f"evertree has no machine code for this: {library.why_not()}. It can be compiled by Numba: "
            "pip install 'evertree[jit]'"
        ) from None
    return numba_compiler


def check_version(version: str) -> None:
    """Refuse a version of Numba with which kernels have not been tested."""
    found = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if not TESTED[0] <= found < TESTED[1]:
        first, after = (".".join(map(str, bound)) for bound in TESTED)
        raise MissingExtraError(
            f"evertree compiles its kernels with Numba from {first} to before {after}; this is {version}: "
            f"pip install 'numba>={first},<{after}'"
        )


def origin() -> dict[str, str]:
    """What decides what kernels compute, beside their sources: the compiler, and the processor it compiled for."""
    if not IS_COMPILED:
        return {"Numba": "off", "CPU": platform.machine()}
    shipped = library.opened()
    if shipped is not None:
        return {"Numba": shipped.compiler, "CPU": shipped.path.stem}
    compiler = the_compiler()
    name, features = compiler.processor(target())
    digest = f" {hashlib.sha256(features.encode()).hexdigest()[:8]}" if features else ""
    return {"Numba": compiler.versions(), "CPU": f"{name}{digest}"}


def target() -> str:
    """The processor that kernels are compiled for: the level of this one, or what EVERTREE_CPU says."""
    return os.environ.get("EVERTREE_CPU") or library.level() or "native"


def _tell(configuration: Configuration) -> None:
    """Say once that kernels are compiled, so that users know what takes so long."""
    if _has_told.is_set() or configuration.linkage is None:
        return
    _has_told.set()
    seconds, folder = _SECONDS[configuration.tree is PairTree], objects.folder()
    if folder is None:
        _logger.warning(
            "evertree compiles its kernels, about %d s in every process, as there is nowhere to keep them: set "
            "EVERTREE_CACHE_DIR to a folder that can be written to",
            seconds,
        )
    else:
        _logger.warning(
            "evertree compiles its kernels, about %d s, and once only: they are kept in %s", seconds, folder
        )
