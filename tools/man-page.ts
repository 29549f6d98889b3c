import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { commands } from '../src/command/command-line.js';
import { manualText } from './manual-text.js';

/** Writes the manual of the command, which is committed: `npm run manual`. */
void writeFile(join(__dirname, '..', '..', 'man', 'prompt-relay.1'), manualText(commands));
