"""The source is prose and no code."""

I cannot improve this kernel; it is limited by memory already.
