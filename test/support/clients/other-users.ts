import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import type { Service } from '../service/service.js';

/** One request of another user of this machine. */
export interface UserRequest {
  readonly method?: string;
  readonly path: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface UserAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

const program = `
const http = require('node:http');
const { where, requests } = JSON.parse(process.argv[1]);
const send = ({ method = 'GET', path, body, headers }) => new Promise((resolve, reject) => {
  const content = body === undefined ? undefined : JSON.stringify(body);
  const all = { ...headers, ...(content && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) }) };
  const req = http.request({ ...where, method, path, headers: all }, async (res) => {
    let text = '';
    for await (const chunk of res.setEncoding('utf8')) text += chunk;
    resolve({ status: res.statusCode, body: JSON.parse(text) });
  });
  req.on('error', reject).end(content);
});
(async () => {
  const answers = [];
  for (const request of requests) answers.push(await send(request));
  process.stdout.write(JSON.stringify(answers));
})();
`;

/** Unassigned user ids; only root can take them. */
export const strangers = { ada: 64_001, bob: 64_002 } as const;
export const canBecomeOthers = process.getuid?.() === 0;

/** Sends requests one after the other from a process of this user, over loopback or a Unix socket. */
export async function sendAs(
  uid: number,
  service: Service,
  requests: readonly UserRequest[],
  where: object = { host: '127.0.0.1', port: service.port },
): Promise<UserAnswer[]> {
  const args = ['-e', program, JSON.stringify({ where, requests })];
  const child = spawn(process.execPath, args, {
    uid,
    gid: uid,
    cwd: '/',
    env: {},
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return JSON.parse(await text(child.stdout)) as UserAnswer[];
}
