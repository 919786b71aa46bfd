"""Kernels to machine code, by Numba. All that evertree uses of Numba's private parts is in this file.

Numba infers the types and writes LLVM's code of a kernel and all its steps. A function around it takes the arguments as
words (see `evertree.kernels.calls`). The whole is optimised once, for a given processor, and becomes an object file: to
be linked into a shared library, or loaded by `evertree.kernels.machine_code`. Numba alone would optimise each step, and
then once more in every kernel that uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils, codegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numba.extending import overload as numba_overload
from numba.np.arrayobj import make_array, populate_array

from evertree.kernels.compile import Step, prepare_to_compile
from evertree.kernels.signatures import Address, Array, Configuration, Linked, Opaque, Signature, is_described

_WORD = ir.IntType(64)

#: The steps that have been compiled so far.
_dispatchers: dict[Step, Any] = {}

#: The steps that the current compilation has asked for.
used_steps: set[Any] = set()


def settings() -> str:
    """What decides what the machine code is, beside its sources and the processor."""
    return f"{versions()} {llvm.get_process_triple()} {numba.config.BOUNDSCHECK}"


def versions() -> str:
    """The versions of Numba and of LLVM's binding."""
    return f"{numba.__version__} with llvmlite {llvmlite.__version__}"


# -- what kernels are made of


def type_of_step(step: Step) -> Any:
    """The type of a step, or of a kernel that is called by another."""
    used_steps.add(step.py_func)
    found = _dispatchers.get(step)
    if found is None:
        found = _dispatchers[step] = numba.njit(**step.targetoptions)(step.py_func)
    return types.Dispatcher(found)


def overload(function: Callable[..., Any], typed: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Let `typed` say, by the types of its arguments, which function stands for `function` in kernels."""
    numba_overload(function, jit_options=dict(options))(typed)


def literal(kind: Any) -> Any:
    """The value of a type that has only one, None for others."""
    return getattr(kind, "literal_value", None)


@cache
def type_of_address_call() -> Any:
    """The type of `evertree.kernels.pairwise.dissimilarities.call_row`: it calls machine code that takes words."""
    call = intrinsic(_call_by_address)
    cpu_target.typing_context.refresh()
    return cpu_target.typing_context.resolve_value_type(call)


def _call_by_address(_typing: Any, address: Any, x: Any, params: Any, i: Any, js: Any, out: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words = [builder.extract_value(args[1], 0), ir.Constant(_WORD, 0), builder.extract_value(args[1], 1)]
        for k in (2, 3, 4, 5):
            if k == 3:
                words.append(args[k])
                continue
            array = make_array(signature.args[k])(context, builder, args[k])
            words += [builder.ptrtoint(array.data, _WORD), builder.extract_value(array.shape, 0)]
        place = cgutils.alloca_once(builder, _WORD, size=len(words))
        for k, word in enumerate(words):
            builder.store(word, builder.gep(place, [ir.Constant(_WORD, k)]))
        # Row functions of the package never raise: they divide as NumPy does.
        function = ir.FunctionType(_WORD, [_WORD.as_pointer()])
        builder.call(builder.inttoptr(args[0], function.as_pointer()), [place])
        return context.get_dummy_value()

    return types.void(types.int64, x, params, types.int64, js, out), generate


# -- from kernels to LLVM's code


def _type_of(kind: Any, configuration: Configuration) -> Any:
    if isinstance(kind, Array):
        dtype = numba.from_dtype(kind.dtype_for(configuration.dtype))
        return types.Array(dtype, kind.ndim, "A" if kind.has_strides else "C")
    if isinstance(kind, Opaque):
        return types.UniTuple(types.int64, 2)
    if isinstance(kind, Linked):
        return types.NamedTuple([types.float64], configuration.linkage)
    if is_described(kind):
        columns = types.NamedTuple([_type_of(column, configuration) for column in kind.kinds().values()], kind)
        # The name is a part of that of every function; otherwise it would list all columns.
        columns.name = f"{kind.__name__}_{configuration.dtype}" if kind.dtypes() else kind.__name__
        return columns
    if kind in (int, float):
        return types.int64 if kind is int else types.float64
    if isinstance(kind, Address):
        return types.int64
    return _type_of(configuration.tree, configuration)  # one of several trees


class _Words:
    """Reads values from words in memory, one after the other."""

    def __init__(self, context: Any, builder: Any, address: Any) -> None:
        self._context, self._builder, self._address, self._next = context, builder, address, 0

    def word(self) -> Any:
        found = self._builder.load(self._builder.gep(self._address, [ir.Constant(_WORD, self._next)]))
        self._next += 1
        return found

    def value(self, kind: Any, given: Any) -> Any:
        """The next value: of a kind of `evertree.kernels.signatures`, and of Numba's type `given`."""
        context, builder = self._context, self._builder
        if isinstance(given, types.Array):
            return self._array(given, is_column=kind is _IN_GROUP)
        if isinstance(given, types.NamedTuple) and isinstance(kind, Linked):
            return context.make_tuple(builder, given, [self.value(float, types.float64)])
        if isinstance(given, types.NamedTuple):
            group = _Words(context, builder, builder.inttoptr(self.word(), _WORD.as_pointer()))
            return context.make_tuple(builder, given, [group.value(_IN_GROUP, column) for column in given])
        if isinstance(given, types.UniTuple):
            return context.make_tuple(builder, given, [self.word() for _ in given])
        return builder.bitcast(self.word(), ir.DoubleType()) if given == types.float64 else self.word()

    def _array(self, given: Any, is_column: bool) -> Any:
        context, builder = self._context, self._builder
        array = make_array(given)(context, builder)
        data = builder.inttoptr(self.word(), array.data.type)
        shape = [self.word() for _ in range(given.ndim)]
        itemsize = ir.Constant(_WORD, context.get_abi_sizeof(context.get_data_type(given.dtype)))
        if is_column:
            strides = [self.word() for _ in range(given.ndim)]
        else:
            strides = [itemsize]
            for length in reversed(shape[1:]):
                strides.insert(0, builder.mul(strides[0], length))
        populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
        return array._getvalue()


#: The kind of what is in a group of columns.
_IN_GROUP = object()


class _PartOfKernel(codegen.JITCodeLibrary):  # type: ignore[misc]
    """The code of one step as it comes: it is optimised with the kernel, and not loaded into this process."""

    def _optimize_functions(self, _: Any) -> None:
        pass

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, _: str) -> int:
        return 0


@contextmanager
def _unoptimised(generator: Any) -> Iterator[None]:
    """Compile without optimising, in this block. Nobody else compiles meanwhile."""
    before = generator._library_class
    generator._library_class, generator.set_env = _PartOfKernel, lambda *_: None
    try:
        yield
    finally:
        generator._library_class = before
        del generator.set_env


#: Code that was compiled for a user's function, and must stay in memory.
_of_users: list[Any] = []


@global_compiler_lock
def compiled_now(function: Callable[..., Any], signature: Signature, configuration: Configuration, symbol: str) -> int:
    """The address of a function that calls one of a user, as Numba compiles it: with memory of its own."""
    given = [_type_of(kind, configuration) for kind in signature.kinds.values()]
    dispatcher = numba.njit(function)
    dispatcher.compile(tuple(given))
    (compiled,) = dispatcher.overloads.values()
    library = _with_words(compiled, list(zip(signature.kinds.values(), given, strict=True)), symbol)
    library.finalize()
    _of_users.append(library)
    address: int = library.get_pointer_to_function(symbol)
    return address


@global_compiler_lock
def lowered(function: Callable[..., Any], signature: Signature, configuration: Configuration, symbol: str) -> bytes:
    """The kernel as LLVM's code, for no processor in particular: one function `symbol` of words."""
    prepare_to_compile()
    used_steps.clear()
    given = [_type_of(kind, configuration) for kind in signature.kinds.values()]
    dispatcher = numba.njit(_nrt=False, no_cfunc_wrapper=True, no_cpython_wrapper=True)(function)
    with _unoptimised(dispatcher.targetctx.codegen()):
        dispatcher.compile(tuple(given))
        (compiled,) = dispatcher.overloads.values()
        library = _with_words(compiled, list(zip(signature.kinds.values(), given, strict=True)), symbol)
        library.finalize()
    code: bytes = library._final_module.as_bitcode()
    return code


def _with_words(compiled: Any, parameters: list[tuple[Any, Any]], symbol: str) -> Any:
    """A library with a function `symbol` that reads the arguments of a compiled function from words, and calls it."""
    context, described = compiled.target_context, compiled.fndesc
    library = context.codegen().create_library(symbol)
    module = library.create_ir_module(symbol)
    entry = ir.Function(module, ir.FunctionType(_WORD, [_WORD.as_pointer()]), symbol)
    builder = ir.IRBuilder(entry.append_basic_block())
    words = _Words(context, builder, entry.args[0])
    args = [words.value(kind, given) for kind, given in parameters]
    inner = context.declare_function(module, described)
    status, result = context.call_conv.call_function(builder, inner, described.restype, described.argtypes, args)
    with builder.if_then(status.is_error, likely=False):
        builder.ret(builder.ptrtoint(status.excinfoptr, _WORD))
    results = described.restype
    if results != types.none:
        out = builder.inttoptr(words.word(), _WORD.as_pointer())
        several = isinstance(results, types.BaseTuple)
        for k, kind in enumerate(results if several else [results]):
            number = builder.extract_value(result, k) if several else result
            builder.store(_as_word(builder, kind, number), builder.gep(out, [ir.Constant(_WORD, k)]))
    builder.ret(ir.Constant(_WORD, 0))
    library.add_ir_module(module)
    library.add_linking_library(compiled.library)
    return library


def _as_word(builder: Any, kind: Any, number: Any) -> Any:
    kind = types.unliteral(kind)
    if isinstance(kind, types.Float):
        return builder.bitcast(number if kind.bitwidth == 64 else builder.fpext(number, ir.DoubleType()), _WORD)
    if isinstance(kind, types.Boolean):
        return builder.zext(number, _WORD)
    return number if number.type == _WORD else builder.sext(number, _WORD)


# -- from LLVM's code to machine code


@cache
def processor(cpu: str) -> tuple[str, str]:
    """The name of a processor, and what it has beyond that: a name of LLVM's, or ``"native"`` for this one."""
    if cpu != "native":
        return cpu, ""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@cache
def target_machine(cpu: str, is_loaded: bool, is_wide: bool = False) -> Any:
    """What LLVM knows of a processor, for objects that are linked into a library, or loaded into this process.

    The parts of a loaded one may lie far apart, so that it has addresses of 64 bits. If it is wide, vectors may have
    512 bits where LLVM would take half: some processors slow down for them.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    name, features = processor(cpu)
    if is_wide and target.name.startswith("x86"):
        features = f"{features},-prefer-256-bit".lstrip(",")
    options = {"reloc": "pic", "codemodel": "default"}
    if is_loaded:
        options = {"reloc": "static" if target.name.startswith("x86") else "default", "codemodel": "jitdefault"}
    return target.create_target_machine(cpu=name, features=features, opt=3, jit=is_loaded, **options)


def object_of(code: bytes, symbol: str, cpu: str, is_loaded: bool, is_wide: bool) -> bytes:
    """An object file with the function `symbol` for a processor, to be linked into a library, or to be loaded."""
    machine = target_machine(cpu, is_loaded, is_wide)
    module = llvm.parse_bitcode(code)
    for named in (*module.functions, *module.global_variables):
        if not named.is_declaration and named.name != symbol:
            named.linkage = "internal"
    # As Numba does: inline at first, so that loops are seen as a whole, and then optimise all.
    for level in (0, 3):
        options = llvm.create_pipeline_tuning_options(speed_level=level)
        options.loop_vectorization, options.slp_vectorization = level == 3, False
        builder = llvm.create_pass_builder(machine, options)
        passes = builder.getModulePassManager()
        if level == 0:
            passes.add_loop_rotate_pass()
            passes.add_instruction_combine_pass()
            passes.add_jump_threading_pass()
        passes.run(module, builder)
    found: bytes = machine.emit_object(module)
    return found
