I cannot improve this kernel.
