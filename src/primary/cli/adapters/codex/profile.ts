import { z } from 'zod';
import { cliError } from '../../../../shared/errors.js';
import { type Consult, filePlace } from '../../contract/adapter.js';
import { jsonOf } from '../common/lines.js';
import { codexAnswers, configQuery } from './lines.js';
import type { DefaultEfforts } from './thread.js';

/** How one version is started so that it only answers. */
export interface CodexProfile {
  /** For any of its commands. `{file}` stands for the path of the catalog. */
  readonly args: readonly string[];
  readonly catalog: CodexCatalog;
}

/** A key that a version does not know is ignored without a word: whether they hold is asked afterwards. */
const settings = {
  web_search: 'disabled',
  project_doc_max_bytes: 0,
  include_environment_context: false,
  include_permissions_instructions: false,
  include_apps_instructions: false,
  include_collaboration_mode_instructions: false,
  'skills.include_instructions': false,
  'skills.bundled.enabled': false,
  'tools.experimental_request_user_input.enabled': false,
  'history.persistence': 'none',
  'analytics.enabled': false,
  check_for_update_on_startup: false,
} as const;

/** These must hold in any version. The others save time, or keep data of the host from the maker of the program. */
const vital: readonly (keyof typeof settings)[] = [
  'web_search',
  'project_doc_max_bytes',
  'include_environment_context',
];

/** It is named among the features as on, but without `shell_tool` it offers nothing. */
const harmless: ReadonlySet<string> = new Set(['unified_exec']);

/**
 * Finds out how this version is made inert, and proves it: every feature that is on is switched off, and then nothing but
 * the prompt may be left of what a model would get. Throws `cli_error` for a version where that can't be done. No API
 * is asked.
 */
export async function findProfile(consult: Consult): Promise<CodexProfile> {
  const on = featuresOn(await print(consult, ['features', 'list']));
  const catalog = safeCatalog(await print(consult, ['debug', 'models', '--bundled']));
  if (catalog === null) throw unusable('does not list its models');
  const args = [
    ...on.flatMap((feature) => ['--disable', feature]),
    ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${JSON.stringify(value)}`]),
    ...['-c', `model_catalog_json="${filePlace}"`],
  ];
  const profile = { args, catalog };
  const left = featuresOn(await print(consult, ['features', 'list', ...args], catalog)).filter(
    (on) => !harmless.has(on),
  );
  if (left.length > 0) throw unusable(`does not switch off ${left.join(', ')}`);
  await proveSettings(consult, profile); // first: to print a prompt, the program would start MCP servers
  await provePrompt(consult, profile);
  return profile;
}

/** As the program lists them: name, stage and state. What was removed has no effect. */
function featuresOn(stdout: string): readonly string[] {
  return stdout.split('\n').flatMap((line) => {
    const [, name, stage, state] = /^([a-z][\w.]*)\s+(\S.*?)\s+(true|false)\s*$/.exec(line) ?? [];
    return name !== undefined && state === 'true' && stage !== 'removed' ? [name] : [];
  });
}

const canary = 'a prompt of the trial';
const promptItem = z.object({
  type: z.literal('message'),
  role: z.literal('user'),
  content: z.tuple([z.object({ type: z.literal('input_text'), text: z.literal(canary) })]),
});

/** The program can print what it would send to a model: tools, instructions and files of the host would stand beside the prompt. */
async function provePrompt(consult: Consult, { args, catalog }: CodexProfile): Promise<void> {
  const printed = jsonOf(await print(consult, ['debug', 'prompt-input', ...args, canary], catalog));
  if (!z.tuple([promptItem]).safeParse(printed).success) throw unusable('sends the model more than the prompt');
}

async function proveSettings(consult: Consult, { args, catalog }: CodexProfile): Promise<void> {
  const [answer] = await codexAnswers(consult, args, catalog.text, [configQuery]);
  const { data } = z.object({ config: z.record(z.string(), z.unknown()) }).safeParse(answer);
  if (data === undefined) throw unusable('does not report its configuration');
  const ignored = vital.filter((key) => data.config[key] !== settings[key]);
  if (ignored.length > 0) throw unusable(`ignores ${ignored.join(', ')}`);
  const servers = Object.keys((data.config.mcp_servers as object | null) ?? {});
  if (servers.length > 0) throw unusable(`has settings of this host that start MCP servers: ${servers.join(', ')}`);
}

async function print(consult: Consult, args: readonly string[], catalog?: CodexCatalog): Promise<string> {
  const { code, stdout } = await consult(args, '', undefined, catalog?.text);
  if (code !== 0) throw unusable(`does not answer ${args.slice(0, 2).join(' ')}`);
  return stdout;
}

function unusable(why: string) {
  return cliError('other', `this version of codex can not be used safely: it ${why}`);
}

/**
 * What the program knows of each model decides which tools that model gets, whatever features are switched off: code that
 * it writes, patches of files, agents of its own. So the program is started with a list of its own models in which nothing
 * of that is left.
 */
export interface CodexCatalog {
  /** As the program takes it, JSON. */
  readonly text: string;
  readonly defaultEfforts: DefaultEfforts;
}

const entry = z.looseObject({ slug: z.string(), default_reasoning_level: z.string().nullish().catch(null) });
const printed = z.object({ models: z.array(entry).min(1) });

/** How to talk with a model, and nothing of tools. Every other field of an entry is left out. */
const passedOn: ReadonlySet<string> = new Set([
  ...['slug', 'display_name', 'description', 'visibility', 'priority', 'supported_in_api', 'model_specialty'],
  ...['default_reasoning_level', 'supported_reasoning_levels', 'supports_reasoning_effort_updates'],
  ...['supports_reasoning_summaries', 'supports_reasoning_summary_parameter', 'default_reasoning_summary'],
  ...['support_verbosity', 'default_verbosity', 'additional_speed_tiers', 'service_tiers', 'default_service_tier'],
  ...['input_modalities', 'supports_image_detail_original', 'truncation_policy', 'use_responses_lite'],
  ...['effective_context_window_percent', 'comp_hash', 'minimal_client_version'],
]);

/**
 * Without a window the program never replaces a conversation by a summary of its own: the API says when one is too long.
 * The other keys must be there.
 */
const safe = {
  base_instructions: '',
  model_messages: null,
  shell_type: 'disabled',
  apply_patch_tool_type: null,
  supports_search_tool: false,
  supports_parallel_tool_calls: false,
  experimental_supported_tools: [],
  context_window: null,
  max_context_window: null,
  availability_nux: null,
  upgrade: null,
};

/** Null for what is no list of models. */
export function safeCatalog(stdout: string): CodexCatalog | null {
  const { data } = printed.safeParse(jsonOf(stdout));
  if (data === undefined) return null;
  const models = data.models.map((model) => ({
    ...Object.fromEntries(Object.entries(model).filter(([key]) => passedOn.has(key))),
    ...safe,
  }));
  const efforts = data.models.flatMap(({ slug, default_reasoning_level: level }) =>
    level == null ? [] : [[slug, level] as const],
  );
  return { text: JSON.stringify({ models }), defaultEfforts: new Map(efforts) };
}
