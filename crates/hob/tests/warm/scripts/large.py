import sys
sys.stdout.write("Content-Type: text/plain\n\n")
for number in range(200000):
    print(number)
