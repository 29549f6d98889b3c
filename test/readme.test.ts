import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../src/shared/config/config.js';
import { shellWords } from '../src/shared/config/shell-words.js';
import { httpStatusOf } from '../src/shared/errors.js';
import { serviceExits } from '../src/shared/exit-codes.js';
import { logEvents } from '../src/shared/logger.js';
import { configurationRows } from '../tools/configuration-table.js';
import { tableUnder } from './support/markdown.js';
import { root } from './support/sources.js';

describe('the README', () => {
  it('shows every variable with its default and its meaning, as the code has them', () => {
    expect(tableUnder('Configuration')).toEqual(configurationRows());
  });

  it('starts the service with commands that it takes, and that take stdin for the whole prompt', async () => {
    const starts =
      readFileSync(join(root, 'README.md'), 'utf8').match(/^MODEL_API_CLI=command .+(?= npm start$)/gm) ?? [];
    expect(starts).toHaveLength(2);
    for (const start of starts) {
      const env = Object.fromEntries(shellWords(start).map((word) => word.split(/=(.*)/s, 2)));
      const { cliCommand } = await loadConfig(env, () => Promise.reject(new Error('there is no file to read')));
      expect(cliCommand).not.toContain('-'); // stdin to some programs, but a part of the prompt to `llm`
    }
  });

  it('shows every error code with its status, and what it means', () => {
    const rows = tableUnder('Errors');
    expect(rows.map(([code, status]) => [code, Number(status)])).toEqual(Object.entries(httpStatusOf));
    expect(rows.filter(([, , meaning = '']) => meaning.length < 20)).toEqual([]);
  });

  it('names each status that broken HTTP is answered with', () => {
    const [, , meaning] = tableUnder('Errors').find(([code]) => code === 'validation_error') ?? [];
    for (const status of [408, 431]) expect(meaning).toContain(String(status));
  });

  it('shows every exit code of the service', () => {
    expect(tableUnder('Operations').map(([code]) => Number(code))).toEqual(Object.values(serviceExits));
  });

  it('shows every event of the log with its meaning', () => {
    expect(tableUnder('Log records')).toEqual(Object.entries(logEvents));
  });
});
