/**
 * Exits with 0 if GET /health says 200, else with 1: not serving, draining or, with MODEL_API_STRICT_HEALTH, no model CLI.
 * Asks with a Host that the service accepts, wherever it is bound.
 */
const { get } = require('node:http');

const { MODEL_API_HOST = '127.0.0.1', MODEL_API_PORT = '5051', MODEL_API_ALLOWED_HOSTS = '' } = process.env;
const wildcards = ['0.0.0.0', '::', '0', '::0'];
const bound = MODEL_API_HOST.replace(/^\[(.*)\]$/, '$1');
const hostname = wildcards.includes(bound) ? '127.0.0.1' : bound;
const accepted = MODEL_API_ALLOWED_HOSTS.split(',')
  .map((name) => name.trim().replace(/^[^[].*:.*$/, '[$&]'))
  .find((name) => name !== '');
const headers = accepted ? { host: accepted } : {};

process.exitCode = 1;
get({ hostname, port: MODEL_API_PORT, path: '/health', headers, agent: false, timeout: 3000 }, (response) => {
  process.exitCode = response.statusCode === 200 ? 0 : 1;
  response.resume();
})
  .on('timeout', function giveUp() {
    this.destroy();
  })
  .on('error', () => {});
