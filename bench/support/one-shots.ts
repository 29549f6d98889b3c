import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { programs } from '../../test/support/service/service.js';
import { prompt } from './task.js';

/** Program that reads a prompt from stdin, answers, and exits. */
export interface OneShot {
  readonly name: string;
  readonly command: readonly [program: string, ...args: string[]];
  readonly answer: string;
}

/** Node program that does little but start, the minimum cost of a model CLI in Node. */
export const nodeProgram: OneShot = {
  name: 'a Node program',
  command: [process.execPath, join(programs, 'upper.js')],
  answer: prompt.toUpperCase(),
};

/** Program that only starts and ends, so that the measurement shows only the relay's cost. */
export const cat: OneShot = { name: '`cat`', command: ['/bin/cat'], answer: prompt };

/** Program between the other two. A version manager's shim would cost more than Python itself, so it is not used. */
export const script: OneShot = existsSync('/usr/bin/python3')
  ? {
      name: 'a Python program',
      command: ['/usr/bin/python3', '-c', 'import sys; sys.stdout.write(sys.stdin.read().upper())'],
      answer: prompt.toUpperCase(),
    }
  : { name: 'a shell script', command: ['/bin/sh', '-c', 'tr a-z A-Z'], answer: prompt.toUpperCase() };
