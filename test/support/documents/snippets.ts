import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './sources.js';

/** Block of commands or code on a page. */
export interface Snippet {
  readonly page: string;
  /** Line number of the first line of code. */
  readonly line: number;
  readonly language: string;
  readonly heading: string;
  readonly code: string;
  /** Reason in the comment `<!-- not run: … -->`, if any. */
  readonly notRun: string | null;
}

interface Runner {
  /** Test below `test` without its extension, or a script. */
  readonly by: string;
  readonly page: string;
  readonly heading?: string;
  readonly language?: string;
  readonly has?: RegExp;
}

/** Table of the tests and the snippets that each runs. */
export const runners: readonly Runner[] = [
  { by: '.ci/first-minute', page: 'README.md', language: 'sh' },
  { by: 'programs/sdks/snippets', page: 'README.md', language: 'python' },
  { by: 'programs/sdks/snippets', page: 'docs/sdks.md', heading: 'Snippets' },
  { by: 'programs/agents/coding-agents', page: 'docs/sdks.md', heading: 'Coding agents' },
  { by: 'programs/agents/mcp-clients', page: 'docs/sdks.md', heading: 'MCP' },
  { by: 'service/system/snippets', page: 'docs/api.md' },
  { by: 'service/system/snippets', page: 'docs/clients.md', heading: 'Keys' },
  { by: 'service/system/snippets', page: 'docs/clients.md', heading: 'Usage' },
  { by: 'service/system/snippets', page: 'docs/operations.md' },
  { by: 'service/system/snippets', page: 'docs/command.md' },
  { by: 'service/system/snippets', page: 'docs/tasks.md', has: /^prompt-relay/ },
  { by: 'programs/systemd/units', page: 'docs/systemd.md', has: /--prefix \/usr\/local/ },
  { by: 'programs/systemd/store', page: 'docs/stores.md', heading: 'Backup' },
  { by: 'programs/systemd/fleet', page: 'docs/fleet.md', has: /prompt-relay@/ },
  { by: 'programs/fleet/front', page: 'docs/fleet.md', has: /openssl req|^sed -e/ },
];

const languages = ['bash', 'sh', 'console', 'python', 'js', 'ts'];

/** Returns the pages for users and contributors. */
export function pagesWithSnippets(): string[] {
  const pages = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'));
  return ['README.md', 'CONTRIBUTING.md', ...pages.map((name) => `docs/${name}`)];
}

/** Returns all snippets of a page, except languages that no test runs. */
export function snippetsOf(page: string): Snippet[] {
  const lines = readFileSync(join(root, page), 'utf8').split('\n');
  const snippets: Snippet[] = [];
  let heading = '';
  let notRun: string | null = null;
  for (let at = 0; at < lines.length; at++) {
    const [, indent, language = ''] = /^( *)```(\w*)/.exec(lines[at] ?? '') ?? [];
    if (indent === undefined) {
      heading = /^#+ (.*)/.exec(lines[at] ?? '')?.[1] ?? heading;
      if (lines[at] !== '') notRun = /^ *<!-- not run: (.*) -->$/.exec(lines[at] ?? '')?.[1] ?? null;
      continue;
    }
    const end = lines.indexOf(`${indent}\`\`\``, at + 1);
    const code = lines.slice(at + 1, end).map((line) => `${line.slice(indent.length)}\n`);
    if (languages.includes(language))
      snippets.push({ page, line: at + 2, language, heading, code: code.join(''), notRun });
    notRun = null;
    at = end;
  }
  return snippets;
}

export function isRunBy(runner: Runner, snippet: Snippet): boolean {
  const { page, heading = snippet.heading, language = snippet.language, has = /^/ } = runner;
  const isHere = page === snippet.page && heading === snippet.heading && language === snippet.language;
  return isHere && snippet.notRun === null && has.test(snippet.code);
}

/** Returns the snippets that this test must run, in the order of the pages. Throws if the list is empty. */
export function snippetsFor(test: string): Snippet[] {
  const runnersOfTest = runners.filter(({ by }) => by === test);
  const snippets = [...new Set(runnersOfTest.map(({ page }) => page))].flatMap(snippetsOf);
  const found = snippets.filter((snippet) => runnersOfTest.some((runner) => isRunBy(runner, snippet)));
  if (found.length === 0) throw new Error(`no page has a snippet for ${test}`);
  return found;
}

/** Returns the command lines without comments and prompts; continued lines are joined. */
export function commandsOf({ language, code }: Snippet): string[] {
  if (!['bash', 'sh', 'console'].includes(language)) return [];
  const lines = code.replaceAll(/ *\\\n */g, ' ').split('\n');
  const typed = language === 'console' ? lines.flatMap((line) => /^\$ (.*)/.exec(line)?.[1] ?? []) : lines;
  return typed.map((line) => line.replace(/(^|\s)# .*$/, '').trim()).filter((line) => line !== '');
}
