import { spawn } from 'node:child_process';
import { perform, prompt, type Task } from './task.js';

/** Program that is the bare loop. Arguments: expected answer, program, and the arguments of the program. */

const [expected, program = '', ...args] = process.argv.slice(2);
const env = { PATH: process.env.PATH, HOME: process.env.HOME };

process.on('message', (task: Task) => {
  void perform(task, answerOnce).then((result) => process.send?.(result));
});

function answerOnce(): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    child.stderr.resume();
    child.once('error', reject);
    child.once('close', (code) => {
      if (text === expected) resolve();
      else reject(new Error(`the program exited with ${code} after ${JSON.stringify(text.slice(0, 500))}`));
    });
    child.stdin.end(prompt);
  });
}
