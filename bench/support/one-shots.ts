import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { programs } from '../../test/support/service.js';
import { prompt } from './task.js';

/** A program that reads a prompt from stdin, answers, and exits. */
export interface OneShot {
  readonly name: string;
  readonly command: readonly [program: string, ...args: string[]];
  readonly answer: string;
}

/** What a model CLI written for Node costs at the very least: its start. */
export const nodeProgram: OneShot = {
  name: 'a Node program',
  command: [process.execPath, join(programs, 'upper.js')],
  answer: prompt.toUpperCase(),
};

/** Nothing but a start and an end: all that is seen is our own cost. */
export const cat: OneShot = { name: '`cat`', command: ['/bin/cat'], answer: prompt };

/** Something between the two; not through a version manager's shim, which costs more than Python itself. */
export const script: OneShot = existsSync('/usr/bin/python3')
  ? {
      name: 'a Python program',
      command: ['/usr/bin/python3', '-c', 'import sys; sys.stdout.write(sys.stdin.read().upper())'],
      answer: prompt.toUpperCase(),
    }
  : { name: 'a shell script', command: ['/bin/sh', '-c', 'tr a-z A-Z'], answer: prompt.toUpperCase() };
