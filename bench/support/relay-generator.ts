import { Agent, request } from 'node:http';
import { perform, prompt, type Task } from './task.js';

/** Program that sends prompts to a relay. Arguments: port of the relay, and the expected answer. */

const port = Number(process.argv[2]);
const expected = process.argv[3];
const body = JSON.stringify({ prompt });
const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };

process.on('message', (task: Task) => {
  const agent = new Agent({ keepAlive: true });
  void perform(task, () => ask(agent)).then((result) => {
    agent.destroy(); // the server would close idle sockets before the next task
    process.send?.(result);
  });
});

function ask(agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, path: '/ask', method: 'POST', agent, headers }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      answer.once('end', () => {
        const { response } = JSON.parse(text) as { response?: string };
        if (response === expected) resolve();
        else reject(new Error(`the relay answered ${answer.statusCode} ${text.slice(0, 500)}`));
      });
    });
    asked.once('error', reject).end(body);
  });
}
