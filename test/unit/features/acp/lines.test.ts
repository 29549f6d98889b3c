import type {
  ContentBlock,
  InitializeRequest,
  InitializeResponse,
  NewSessionRequest,
  NewSessionResponse,
  PromptResponse,
  RequestPermissionResponse,
  SessionNotification,
  StopReason,
} from '@agentclientprotocol/sdk' with { 'resolution-mode': 'import' };
import type { z } from 'zod';
import { AgentTools } from '../../../../src/features/acp/agent-tools.js';
import { modelsOf } from '../../../../src/features/acp/choices.js';
import {
  initialize,
  initialized,
  newSession,
  promptEnded,
  refused,
  sessionMade,
  sessionUpdated,
} from '../../../../src/features/acp/lines.js';
import { promptBlocks } from '../../../../src/features/acp/session.js';
import { stoppedBy } from '../../../../src/features/acp/turn.js';
import { callback, turnOf } from '../../../support/agents/acp-lines.js';

// The compiler compares the schemas with the types of the official SDK: every message of an agent can be read, and
// every message to it is valid.

const told = {
  initialize: {
    protocolVersion: 1,
    agentCapabilities: { loadSession: true, promptCapabilities: { image: true, audio: false, _meta: null } },
    agentInfo: { name: 'agent', title: 'The agent', version: '1.0.0' },
    authMethods: [{ id: 'login', name: 'Log in', description: null }],
    _meta: null,
  } satisfies InitializeResponse,
  session: {
    sessionId: 's',
    modes: { currentModeId: 'ask', availableModes: [{ id: 'ask', name: 'Ask' }] },
    configOptions: [
      { id: 'loud', name: 'Loud', type: 'boolean', currentValue: false },
      { id: 'mode', name: 'Mode', category: 'mode', type: 'select', currentValue: 'a', options: [] },
      {
        id: 'model',
        name: 'Model',
        category: 'model',
        type: 'select',
        currentValue: 'one',
        options: [{ value: 'one', name: 'One', description: null, _meta: null }],
      },
    ],
  } satisfies NewSessionResponse,
  prompt: { stopReason: 'end_turn', _meta: { anything: 1 } } satisfies PromptResponse,
};

const updates = [
  { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'Hi', annotations: null } },
  { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'Hm' } },
  { sessionUpdate: 'tool_call', toolCallId: 't', title: 'A tool', kind: 'read', status: 'pending' },
  { sessionUpdate: 'plan', entries: [] },
  { sessionUpdate: 'usage_update', used: 1, size: 2, cost: { amount: 0.5, currency: 'USD' } },
] satisfies SessionNotification['update'][];

const ignored = [
  { sessionUpdate: 'agent_message_chunk', content: { type: 'image', mimeType: 'image/png', data: '' } },
  { sessionUpdate: 'available_commands_update', availableCommands: [] },
  { sessionUpdate: 'current_mode_update', currentModeId: 'ask' },
] satisfies SessionNotification['update'][];

/** Whether a turn with a text counts as an answer, or a part of one, if it ends for this reason. */
const answers: Readonly<Record<StopReason, boolean>> = {
  end_turn: true,
  max_tokens: true,
  max_turn_requests: false,
  refusal: true,
  cancelled: false,
};

/** Functions that do not compile if an answer of the official type does not match the schema that reads it. */
const initializedFits = (value: InitializeResponse): z.input<typeof initialized> => value;
const endFits = ({ stopReason }: PromptResponse): Pick<z.input<typeof promptEnded>, 'stopReason'> => ({ stopReason });

describe('Messages of an agent, by the official types', () => {
  it('are read as answers to requests of the relay', () => {
    expect(initialized.parse(initializedFits(told.initialize))).toMatchObject({
      protocolVersion: 1,
      agentInfo: { version: '1.0.0' },
    });
    const session = sessionMade.parse(told.session);
    expect(session.sessionId).toBe('s');
    expect(modelsOf(session)).toEqual([{ id: 'one', name: 'One', default: true }]);
    expect(promptEnded.parse(endFits(told.prompt)).stopReason).toBe('end_turn');
  });

  it('are read as updates if they matter', () => {
    const notify = (update: SessionNotification['update']): SessionNotification => ({ sessionId: 's', update });
    for (const update of updates) expect(sessionUpdated.safeParse(notify(update)).success).toBe(true);
    for (const update of ignored) expect(sessionUpdated.safeParse(notify(update)).success).toBe(false);
  });

  it.each(Object.entries(answers))('that end a turn by %s: an answer is %s', (stopReason, isAnswer) => {
    expect(stoppedBy(stopReason, true, true) === null).toBe(isAnswer);
    expect(stoppedBy(stopReason, false, false) === null).toBe(stopReason === 'refusal');
  });
});

describe('Messages to an agent, by the official types', () => {
  it('match the protocol', () => {
    const [initializing, capabilities] = initialize satisfies readonly [string, InitializeRequest];
    expect([initializing, capabilities.protocolVersion]).toEqual(['initialize', 1]);
    const server = new AgentTools([]).introduce([], callback);
    const [creating, { cwd }] = newSession('/work', [server]);
    const asked = { cwd, mcpServers: [{ ...server }] } satisfies NewSessionRequest;
    expect([creating, asked.mcpServers]).toEqual([
      'session/new',
      [
        {
          type: 'http',
          name: 'relay',
          url: callback.url,
          headers: [{ name: 'Authorization', value: 'Bearer secret' }],
        },
      ],
    ]);
    const blocks: readonly ContentBlock[] = promptBlocks(turnOf('Hello'), true);
    expect(blocks).toEqual([{ type: 'text', text: 'Hello' }]);
  });

  it('grant no permission', () => {
    const [reply] = refused({ type: 'request', id: 1, method: 'session/request_permission', params: {} });
    const permission: RequestPermissionResponse = { outcome: { outcome: 'cancelled' } };
    expect(JSON.parse(reply?.type === 'reply' ? reply.text : '').result).toEqual(permission);
  });
});
