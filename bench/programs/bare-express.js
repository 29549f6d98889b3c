// A cluster of plain express workers: the minimum cost of answers in JSON. Arguments: number of workers, and a JSON
// object of path → body.
const cluster = require('node:cluster');
const express = require('express');

const workers = Number(process.argv[2]);
const answers = Object.entries(JSON.parse(process.argv[3]));

function lead() {
  cluster.schedulingPolicy = cluster.SCHED_NONE; // like the relay
  let listening = 0;
  cluster.on('listening', (_worker, { port }) => {
    listening++;
    if (listening === workers) process.send(port);
  });
  for (let worker = 0; worker < workers; worker++) cluster.fork();
}

function serve() {
  const app = express();
  for (const [path, body] of answers) app.get(path, (_req, res) => res.json(body));
  app.listen(0, '127.0.0.1');
}

if (cluster.isPrimary) lead();
else serve();
