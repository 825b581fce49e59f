"""Trains on features that a feature service on this machine is asked for, sample by sample."""

import argparse
import http.client
import http.server
import json
import multiprocessing
import os
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Answer(http.server.BaseHTTPRequestHandler):
    """The features of the sample whose number the path ends in."""

    def do_GET(self):
        number = int(self.path.rpartition("/")[2])
        generator = random.Random(number)
        time.sleep(0.004)  # what the store behind it takes
        body = json.dumps([generator.random() for _ in range(64)]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Service(http.server.ThreadingHTTPServer):
    """Ends as soon as the training is gone, however that ended."""

    daemon_threads = True

    def service_actions(self):
        if os.getppid() != self.training:
            os._exit(0)


def serve(training, port):
    """`port` is a pipe that the service tells its number through."""
    with Service(("127.0.0.1", 0), Answer) as service:
        service.training = training
        port.send(service.server_address[1])
        port.close()
        service.serve_forever(poll_interval=0.2)


class Features(Dataset):
    def __init__(self, port, count):
        self.port, self.count = port, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", f"/features/{index}")  # the slow line
        answer = json.loads(connection.getresponse().read())  # the slow line
        connection.close()
        features = torch.tensor(answer)
        return features, features[:5].argmax()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    told, tells = multiprocessing.Pipe(duplex=False)
    service = multiprocessing.Process(target=serve, args=(os.getpid(), tells), daemon=True)
    service.start()
    tells.close()
    loader = DataLoader(Features(told.recv(), 1600), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(1, options.epochs + 1):
        for features, labels in loader:
            loss = nn.functional.cross_entropy(model(features), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
