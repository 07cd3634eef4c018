try:
    {}["x"]
except KeyError as error:
    raise RuntimeError("two") from error
