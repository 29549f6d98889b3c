import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import path from 'node:path/posix';
import { z } from 'zod';
import { browserPackages } from '../../../tools/browser-files.js';

export const root = join(__dirname, '..', '..', '..', '..');
export const openApiPath = join(root, 'docs', 'openapi.yaml');

export interface Import {
  /** Path of the imported source below the root, without extension; packages by name, built-ins as node:name. */
  readonly target: string;
  /** Whether only types are imported, which do not exist at run time. */
  readonly isType: boolean;
}

export interface FunctionSize {
  /** File, line and first line of code. */
  readonly place: string;
  readonly lines: number;
}

/** TypeScript source file, with the properties that the rules need. */
export class Source {
  /** Path below the root, with slashes. */
  readonly path: string;
  readonly text: string;
  /** Code without comments, strings and regular expressions; line numbers do not change. */
  readonly code: string;

  constructor(file: string, text: string) {
    this.path = file;
    this.text = text;
    this.code = stripped(text);
  }

  /** Path without extension, as imports name it. */
  get name(): string {
    return this.path.replace(/(?:\.d)?\.m?ts$/, '');
  }

  get lineCount(): number {
    return this.text.trimEnd().split('\n').length;
  }

  get imports(): Import[] {
    return [...this.text.matchAll(statement), ...this.text.matchAll(expression)].map(
      ({ groups: { clause = '', specifier = '' } = {} }) => ({
        target: resolve(this.path, specifier),
        isType: isTypeOnly(clause),
      }),
    );
  }

  /** Names of interfaces, types, classes and enums at the top level. */
  get typeNames(): string[] {
    return [...this.code.matchAll(typeDeclaration)].map(([, name = '']) => name);
  }

  /** Whether the code has conditions at run time. Types, constants and straight code have none. */
  get decides(): boolean {
    return decision.test(this.code.replace(typeBody, ''));
  }

  /** Functions, methods and arrow functions with a body of several lines, including first and last line. */
  get functions(): FunctionSize[] {
    const lines = this.code.split('\n');
    return lines.flatMap((line, index) => {
      const start = startOfFunction(lines, line, index);
      if (start === null) return [];
      const end = lines.findIndex((later, at) => at > index && later.startsWith(`${indentOf(line)}}`));
      return [{ place: `${this.path}:${start + 1} ${lines[start]?.trim()}`, lines: end - start + 1 }];
    });
  }
}

const versions = z.record(z.string(), z.string());
const manifestSchema = z.object({ dependencies: versions });

/** Returns the packages that the published one installs, and those whose files the console has. */
export function publishedDependencies(): string[] {
  const manifest: unknown = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return [...new Set([...Object.keys(manifestSchema.parse(manifest).dependencies), ...browserPackages])];
}

export function readSources(folder: string): Source[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.m?ts$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => new Source(file.slice(root.length + 1).replaceAll('\\', '/'), readFileSync(file, 'utf8')));
}

const typeDeclaration = /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)(?!.* from )/gm;
/** Type alias or interface. Relies on the formatter's layout. */
const typeBody = /^(?:export )?(?:declare )?(?:interface|type) \w[\s\S]*?(?:^\}|;$)/gm;
const decision = /\b(?:if|switch|for|while|catch)\b|\?\?|&&|\|\||\s\?\s/;

/** `import … from '…'`, `export … from '…'` and `import '…'` at the beginning of a line, also over several lines. */
const statement =
  /^(?:import|export)\s+(?:(?<clause>(?:type\s+)?[\w$*{][^'"`;=()]*?)\s*\bfrom\s*)?'(?<specifier>[^']+)'/gm;
/** `import('…')` and `require('…')` anywhere. */
const expression = /\b(?:import|require)\(\s*['"`](?<specifier>[^'"`]+)['"`]/g;

function isTypeOnly(clause: string): boolean {
  if (/^type\b/.test(clause)) return true;
  const names = /^\{([^}]*)\}/
    .exec(clause)?.[1]
    ?.split(',')
    .map((name) => name.trim()) ?? [''];
  return names.filter((name) => name !== '').every((name) => name.startsWith('type ')) && /^\{/.test(clause);
}

function resolve(from: string, specifier: string): string {
  if (!specifier.startsWith('.')) return specifier;
  return path.join(path.dirname(from), specifier).replace(/\.m?js$/, '');
}

const token = new RegExp(
  [
    String.raw`(?:\/\*[\s\S]*?\*\/|\/\/[^\n]*)`,
    String.raw`(?:'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")`,
    String.raw`(?<=(?:[(,=:[!&|?{};]|\breturn|^)\s*)(?:\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*)`,
    '(?:`(?:\\\\[\\s\\S]|[^`\\\\])*`)', // kept, because a template can contain code
  ].join('|'),
  'gm',
);

function stripped(text: string): string {
  return text.replace(token, (found) => (found.startsWith('`') ? found : blank(found))).replace(/[ \t]+$/gm, '');
}

function blank(found: string): string {
  return found.startsWith('/*') || found.startsWith('//') ? found.replace(/[^\n]/g, '') : "''";
}

function indentOf(line: string): string {
  return /^\s*/.exec(line)?.[0] ?? '';
}

const notAFunction = /^\s*(?:\}\s*)?(?:if|for|while|switch|catch|else|try|finally|do|class|interface|export class)\b/;
const opensBody = /\)(?::[^=]*)?\s*\{$|=>\s*\{$/;

/**
 * Returns the first line of the function whose body this line opens; null if it opens none. Relies on the formatter's
 * layout.
 */
function startOfFunction(lines: readonly string[], line: string, index: number): number | null {
  if (!opensBody.test(line) || notAFunction.test(line)) return null;
  if (!/^\s*\)/.test(line)) return index;
  const start = lines.findLastIndex(
    (earlier, at) => at < index && indentOf(earlier) === indentOf(line) && /\S/.test(earlier),
  );
  return notAFunction.test(lines[start] ?? '') ? null : start;
}
