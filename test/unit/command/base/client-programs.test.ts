import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  addService,
  type ClientProgram,
  clientPrograms,
  removeService,
  SettingsError,
  usesService,
} from '../../../../src/command/base/client-programs.js';
import { handPrograms } from '../../../../src/command/base/hand-programs.js';
import { root } from '../../../support/documents/sources.js';

const documented = { url: 'http://127.0.0.1:5051', key: null, model: 'default' };
const target = { url: 'https://relay.example.org', key: 'key-0123', model: 'claude/opus' };
const page = readFileSync(join(root, 'docs', 'sdks.md'), 'utf8');

/** Returns the snippet of docs/sdks.md for a program. */
function snippetFor(name: string): string {
  return new RegExp(`^For ${name}\\b.*?^\`\`\`(?:\\w+)\\n(.*?)^\`\`\``, 'ms').exec(page)?.[1] ?? '';
}

describe('The settings of a program without a file', () => {
  it.each(['codex', 'Continue'])('of %s are those of docs/sdks.md', (name) => {
    const steps = handPrograms.get(name.toLowerCase())?.(documented).join('\n');
    expect(steps).toContain(snippetFor(name));
  });

  it.each(['opencode', 'pi'] as const)('of %s are those of docs/sdks.md', (name) => {
    expect(JSON.parse(addService(clientPrograms[name], '', documented))).toEqual(JSON.parse(snippetFor(name)));
  });

  it('of Claude Code are the variables of docs/sdks.md', () => {
    const { env } = JSON.parse(addService(clientPrograms['claude-code'], '', documented));
    expect(page).toContain(
      `${Object.entries(env)
        .map(([name, value]) => `${name}=${value}`)
        .join(' ')} claude\n`,
    );
  });

  it('of aider are those of its command line in docs/sdks.md', () => {
    const fields = ['openai-api-base: http://127.0.0.1:5051/v1', 'openai-api-key: any', 'model: openai/default'];
    expect(handPrograms.get('aider')?.(documented)).toEqual(expect.arrayContaining(fields));
    expect(page).toContain('OPENAI_API_BASE=http://127.0.0.1:5051/v1 OPENAI_API_KEY=any aider --model openai/default');
  });
});

const programs: Readonly<Record<keyof typeof clientPrograms, ClientProgram>> = clientPrograms;

describe.each(Object.entries(programs))('The settings of %s', (_, program) => {
  it('name the service, the model and the key', () => {
    const text = addService(program, '', target);
    for (const word of ['https://relay.example.org', 'claude/opus', 'key-0123']) expect(text).toContain(word);
  });

  it('replace those of another model, and stay the same after a second time', () => {
    const once = addService(program, '', target);
    expect(addService(program, once, target)).toBe(once);
    const changed = addService(program, once, { ...target, model: 'other' });
    expect(changed).toContain('other');
    if (program !== clientPrograms.opencode) expect(changed).not.toContain('claude/opus'); // it can offer both
  });

  it('are removed without what the user has changed since', () => {
    const before = '{"theme": "dark"}';
    const added = addService(program, before, target);
    const { url } = target;
    expect([usesService(program, added, url), usesService(program, before, url)]).toEqual([true, false]);
    expect(usesService(program, added, 'http://other')).toBe(false);
    expect(JSON.parse(removeService(program, added.replace('dark', 'light'), before))).toEqual({ theme: 'light' });
    expect(removeService(program, added, before)).toBe(before);
  });
});

describe('The removal of the service', () => {
  it('brings back the values that the service has replaced', () => {
    const { opencode, 'claude-code': claude } = programs;
    const old = { env: { ANTHROPIC_MODEL: 'old' }, b: 1 };
    const text = addService(claude, JSON.stringify(old), target).replace('"b": 1', '"b": 2');
    expect(JSON.parse(removeService(claude, text, JSON.stringify(old)))).toEqual({ ...old, b: 2 });
    const chosen = addService(opencode, '{"model": "a/b"}', target).replace('relay/claude/opus', 'c/d');
    expect(JSON.parse(removeService(opencode, chosen, '{"model": "a/b"}'))).toEqual({ model: 'c/d' });
  });
});

describe('Existing settings', () => {
  it('in JSON keep everything else', () => {
    const before = { env: { EDITOR: 'vi', ANTHROPIC_MODEL: 'old' }, permissions: { allow: ['Read'] } };
    const after = JSON.parse(addService(clientPrograms['claude-code'], JSON.stringify(before), target));
    expect(after).toEqual({
      ...before,
      env: expect.objectContaining({ EDITOR: 'vi', ANTHROPIC_MODEL: 'claude/opus', ANTHROPIC_API_KEY: 'key-0123' }),
    });
  });

  it.each(['{ "a": 1, } // comment', '[]', '"text"', 'null'])(
    'in JSON are refused if they are no object: %s',
    (text) => {
      expect(() => addService(clientPrograms.opencode, text, target)).toThrow(SettingsError);
    },
  );
});
