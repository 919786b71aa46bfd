"""The build of the library of machine code, beside the package: see `native.build`."""
