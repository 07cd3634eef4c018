import multiprocessing
def double(x):
    return 2 * x
if __name__ == "__main__":
    print("Content-Type: text/plain\n", flush=True)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(double, range(5)))
