def run(x:
