"""The hot loop: its definition in plain Python (`reference`), and the compiled kernel that equals it (`step`)."""
