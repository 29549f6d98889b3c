import { z } from 'zod';
import { jsonOf } from '../common/lines.js';
import type { DefaultEfforts } from './thread.js';

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

/** What says how to talk with a model, and nothing of tools. Whatever else a version tells of one is left out. */
const kept: ReadonlySet<string> = new Set([
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
    ...Object.fromEntries(Object.entries(model).filter(([key]) => kept.has(key))),
    ...safe,
  }));
  const efforts = data.models.flatMap(({ slug, default_reasoning_level: level }) =>
    level == null ? [] : [[slug, level] as const],
  );
  return { text: JSON.stringify({ models }), defaultEfforts: new Map(efforts) };
}
