"""The interfaces of other libraries: scikit-learn and river."""
