WHY_NOT: str
