import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseCommandLine } from '../../src/command/command-line.js';
import { features } from '../../src/features.js';
import { shellWords } from '../../src/shared/config/clis.js';
import { loadConfig } from '../../src/shared/config/config.js';
import { commandsOf, isRunBy, pagesWithSnippets, runners, snippetsOf } from '../support/documents/snippets.js';
import { readSources, root } from '../support/documents/sources.js';

const minReasonLength = 12;
const snippets = pagesWithSnippets().flatMap(snippetsOf);
const commands = snippets.flatMap((snippet) =>
  commandsOf(snippet).map((command) => [`${snippet.page}:${snippet.line}`, command] as const),
);

const settings = /^(export )?((?:MODEL_API|MODEL_CODE|OTEL)_\w+=.*?)( npm start| npx prompt-relay serve)?$/;
const placeholders = /<[A-Z_]+>|…/g;
const key = `ada:sha256:${'0'.repeat(64)}`;

/** Returns the variables that a line of settings sets; empty for any other line. */
function settingsOf(command: string): Record<string, string> {
  const [, , assignments = ''] = settings.exec(command) ?? [];
  if (assignments.includes('$(')) return {};
  const words = shellWords(assignments.replaceAll(placeholders, 'a-placeholder-of-a-page'));
  if (words.some((word) => !/^\w+=/.test(word))) return {};
  return Object.fromEntries(words.map((word) => word.split(/=(.*)/s, 2)));
}

/** Returns the arguments of prompt-relay, without shell redirections. */
function argumentsOf(command: string): string[][] {
  const own = /(?:^(?:sudo -u \S+ )?(?:\w+=\S+ )*|<\()prompt-relay((?: (?:'[^']*'|"[^"]*"|[^'"|;&<>() ]+))*)/g;
  return [...command.matchAll(own)].map(([, words = '']) => shellWords(words.trim()));
}

function isSettings(command: string): boolean {
  return command === 'npm start' || Object.keys(settingsOf(command)).length > 0;
}

it('Every snippet is run by one test, contains settings that the service accepts, or explains why it is not run', () => {
  expect(snippets.length).toBeGreaterThan(70);
  const wrong = snippets.flatMap((snippet) => {
    const { page, line, notRun } = snippet;
    const tests = runners.filter((runner) => isRunBy(runner, snippet)).length;
    const isRead = commandsOf(snippet).length > 0 && commandsOf(snippet).every(isSettings);
    if (notRun !== null) return notRun.length >= minReasonLength && !isRead ? [] : [`${page}:${line}: needs no reason`];
    return tests === 1 || (tests === 0 && isRead) ? [] : [`${page}:${line}: ${tests} tests`];
  });
  expect(wrong).toEqual([]);
});

it('Every comment on a snippet that is not run precedes one', () => {
  for (const page of pagesWithSnippets()) {
    const comments = readFileSync(join(root, page), 'utf8').match(/<!-- not run/g)?.length ?? 0;
    expect([page, snippetsOf(page).filter(({ notRun }) => notRun !== null).length]).toEqual([page, comments]);
  }
});

/** Each test either runs the snippets in the table, or reads the page itself. */
it.each(runners)('$by runs snippets of $page', (runner) => {
  expect(snippets.filter((snippet) => isRunBy(runner, snippet)).length).toBeGreaterThan(0);
  const { by, page } = runner;
  const text = readFileSync(join(root, by.startsWith('.') ? by : `test/${by}.test.ts`), 'utf8');
  const isTaken = readSources('test').some((source) => source.text.includes(`snippetsFor('${by}')`));
  expect(isTaken || text.includes(page)).toBe(true);
});

it('The service accepts all settings on the pages', async () => {
  const shown = snippets.flatMap((snippet) => {
    const place = `${snippet.page}:${snippet.line}`;
    const lines = commandsOf(snippet).filter((command) => Object.keys(settingsOf(command)).length > 0);
    const starts = lines.filter((line) => / (npm start|serve)$/.test(line)).map(settingsOf);
    const file = Object.assign({}, ...lines.filter((line) => !/ (npm start|serve)$/.test(line)).map(settingsOf));
    return [...starts, file].filter((env) => Object.keys(env).length > 0).map((env) => [place, env] as const);
  });
  expect(shown.length).toBeGreaterThan(20);
  for (const [place, env] of shown) {
    const config = await loadConfig(env, async () => key, undefined, features).catch((error: Error) => error.message);
    expect([place, config]).toEqual([place, expect.objectContaining({ warnings: expect.any(Array) })]);
  }
});

it('The command accepts each line on the pages, apart from shell syntax', () => {
  const lines = commands.flatMap(([place, command]) => argumentsOf(command).map((words) => [place, words] as const));
  expect(lines.length).toBeGreaterThan(15);
  for (const [place, words] of lines) {
    expect([place, words, parseCommandLine(words).type]).toEqual([place, words, expect.stringMatching(/^(run|help)$/)]);
  }
});

it('package.json has every script named on the pages', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly scripts: object };
  const named = commands.flatMap(([place, command]) =>
    [...command.matchAll(/\bnpm run ([\w:-]+)/g)].map(([, name = '']) => [place, name] as const),
  );
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter(([, name]) => !(name in scripts))).toEqual([]);
});
