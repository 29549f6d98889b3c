import { calledTool, type OfferedTool, type ToolWish } from '../jobs/message-parts.js';
import type { ChatCompletionRequest } from './chat-messages.js';

/** What a chat completion offers to the model, and the call that it requires. */
export interface ChatTools {
  readonly called: OfferedTool | null;
  /** Whether they are called functions, as they were before there were tools. */
  readonly isLegacy: boolean;
  /** The field that they stand in. */
  readonly field: 'tools' | 'functions';
  /** Fields about tools that mean nothing in this request. */
  readonly ignored: readonly string[];
}

/** Tools, else functions, which mean the same. Throws `validation_error`. */
export function toolsIn(body: ChatCompletionRequest): ChatTools {
  const { tools, tool_choice: choice, functions, function_call: call } = body;
  const hasFunctions = (functions ?? []).length > 0;
  const isLegacy = (tools ?? []).length === 0 && choice == null && (hasFunctions || call != null);
  const called = isLegacy
    ? calledTool(offeredFunctions(body), wishOfCall(body), 'function_call', 'functions')
    : calledTool(offeredTools(body), wishOfChoice(body));
  const isInVain = (legacy: boolean) => called === null || isLegacy !== legacy;
  return {
    called,
    isLegacy,
    field: isLegacy ? 'functions' : 'tools',
    ignored: [
      ...((tools ?? []).length > 0 && isInVain(false) ? ['tools'] : []),
      ...(choice != null && isInVain(false) ? ['tool_choice'] : []),
      ...(hasFunctions && isInVain(true) ? ['functions'] : []),
      ...(call != null && isInVain(true) ? ['function_call'] : []),
    ],
  };
}

function offeredTools({ tools }: ChatCompletionRequest): OfferedTool[] {
  return (tools ?? []).flatMap(({ function: offered }) => (offered === undefined ? [] : [offeredBy(offered)]));
}

function offeredFunctions({ functions }: ChatCompletionRequest): OfferedTool[] {
  return (functions ?? []).map(offeredBy);
}

function offeredBy({ name, description, parameters }: NonNullable<ChatCompletionRequest['functions']>[number]) {
  return { name, description: description ?? undefined, schema: parameters ?? undefined };
}

function wishOfChoice({ tool_choice: choice }: ChatCompletionRequest): ToolWish {
  if (choice === 'required') return { kind: 'any' };
  if (choice == null || typeof choice === 'string') return { kind: 'free' };
  return { kind: 'named', name: choice.function.name };
}

function wishOfCall({ function_call: call }: ChatCompletionRequest): ToolWish {
  return call == null || typeof call === 'string' ? { kind: 'free' } : { kind: 'named', name: call.name };
}
