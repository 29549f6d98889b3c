import { CodexDecoder, CodexThought } from '../../../../src/features/codex/decoder.js';
import { CodexThread } from '../../../../src/features/codex/thread.js';
import type { Turn } from '../../../../src/primary/cli/contract/adapter.js';
import {
  answers,
  codexLines,
  eventsOf,
  midTurn,
  notifies,
  plainTurn,
  threadResult,
} from '../../../support/agents/codex-lines.js';

const { begun, completed, delta, deltaOf, failed, input, limits, message, retries, started, tokens } = codexLines;

function reasonOf(...lines: readonly string[]): string | undefined {
  const failure = eventsOf(...lines).find(({ type }) => type === 'turn-failed');
  return failure?.type === 'turn-failed' ? failure.reason : undefined;
}

describe('The step that codex must finish', () => {
  const status = (type: string) => notifies('thread/status/changed', { threadId: 'thread-1', status: { type } });

  it('is each request before the model works, and none while the model works', () => {
    const thread = new CodexThread(new Map());
    const decoder = new CodexDecoder(thread);
    expect(decoder.awaited).toBeNull();
    thread.write(plainTurn);
    decoder.begin();
    const steps = [decoder.awaited?.name];
    for (const line of [
      answers('initialize', { result: {} }),
      answers('thread 1', { result: threadResult }),
      started,
    ]) {
      decoder.read(line);
      steps.push(decoder.awaited?.name);
    }
    expect(steps).toEqual(['initialize', 'thread/start', 'turn/start', undefined]);
    expect(decoder.read(delta('Hi') + completed)).toHaveLength(2);
    expect(decoder.awaited).toBeNull();
  });

  it('is the end of the turn when the thread is idle: a failure if the answer is not whole', () => {
    const { decoder } = midTurn();
    decoder.read(delta('Hello wor') + status('idle'));
    expect(decoder.awaited?.late).toMatchObject({ type: 'turn-failed', reason: 'other' });
    decoder.read(message('Hello world'));
    expect(decoder.awaited?.late).toMatchObject({ type: 'turn-end', text: 'Hello world' });
    decoder.read(status('active'));
    expect(decoder.awaited).toBeNull();
  });
});

describe('A renewed codex', () => {
  const { delta, completed } = codexLines;
  const another = { ...threadResult, thread: { id: 'thread-2' } };

  function answered() {
    const process = midTurn();
    process.decoder.read(delta('Hi') + completed);
    return process;
  }

  /** Renews a process, which starts its second thread ahead. */
  function renewed() {
    const process = answered();
    process.thread.renew();
    process.decoder.read(answers('end of thread 1', { result: {} }));
    process.decoder.read(answers('thread 2', { result: another }));
    return process;
  }

  it('has ended its thread, and started another one ahead', () => {
    const { thread, decoder } = answered();
    expect(thread.renew()?.text).toContain('"id":"end of thread 1","method":"thread/unsubscribe"');
    const [start] = decoder.read(answers('end of thread 1', { result: { status: 'unsubscribed' } }));
    expect(start).toMatchObject({ type: 'reply', text: expect.stringContaining('"id":"thread 2"') });
    expect(decoder.read(answers('thread 2', { result: another }))).toMatchObject([{ type: 'turn-end', text: null }]);
  });

  it('gives its new thread the next question at once, with its history', () => {
    const history = [{ role: 'user', text: 'Hello' }] as const;
    const { text } = renewed().thread.write({ ...plainTurn, history });
    expect(text).not.toContain('thread/start');
    expect(text).toMatch(/"thread\/inject_items".*"thread-2".*Hello.*\n.*"turn\/start".*"thread-2"/);
  });

  it('gets the messages that are left of a conversation, and the rest, in its new thread', () => {
    const { thread, decoder } = answered();
    expect(thread.rewind()?.text).toContain('"thread/unsubscribe"');
    decoder.read(answers('end of thread 1', { result: {} }));
    expect(decoder.read(answers('thread 2', { result: another }))).toMatchObject([{ type: 'turn-end' }]);
    const said = (text: string) => [{ role: 'user', text }] as const;
    const { text } = thread.write({ ...plainTurn, heard: said('one'), history: said('two'), text: 'three' });
    expect(text).toMatch(/"thread\/inject_items".*"thread-2".*one.*two.*\n.*"turn\/start".*three/);
  });

  it.each<[string, Partial<Turn>]>([
    ['system text', { system: 'Be brief.' }],
    ['model', { model: 'other' }],
    ['tools', { offer: { tools: [], choice: 'auto', isParallel: true } }],
  ])('ends its new thread if the next question has another %s', (_, more) => {
    const { thread, decoder } = renewed();
    const { text } = thread.write({ ...plainTurn, ...more });
    expect(text).toMatch(/"unused thread 2","method":"thread\/unsubscribe".*"thread-2".*\n.*"id":"thread 3"/);
    decoder.begin();
    expect(decoder.read(answers('unused thread 2', { result: {} }))).toEqual([]);
    const third = { ...threadResult, thread: { id: 'thread-3' } };
    expect(decoder.read(answers('thread 3', { result: third }))).toMatchObject([
      { type: 'reply', text: expect.stringContaining('"threadId":"thread-3"') },
    ]);
  });

  it('is not one that cannot start another thread, or starts it with other limits', () => {
    const { thread, decoder } = answered();
    thread.renew();
    decoder.read(answers('end of thread 1', { result: {} }));
    const unsafe = { ...another, sandbox: { type: 'dangerFullAccess' } };
    expect(decoder.read(answers('thread 2', { result: unsafe }))).toMatchObject([{ type: 'turn-failed' }]);
  });

  it.each([
    ['refuses to end its thread', answers('end of thread 1', { error: { code: 1, message: 'no' } }), 'turn-failed'],
    ['writes for the earlier thread', delta('late'), 'stray'],
  ])('is not one that %s', (_, output, type) => {
    const { thread, decoder } = answered();
    thread.renew();
    expect(decoder.read(output)).toMatchObject([{ type }]);
  });

  it('is unusable when it answers twice, or writes for an earlier thread', () => {
    const { thread, decoder } = answered();
    thread.renew();
    decoder.read(answers('end of thread 1', { result: {} }));
    expect(decoder.read(answers('end of thread 1', { result: {} }))).toEqual([{ type: 'stray' }]);
    decoder.read(answers('thread 2', { result: another }));
    expect(decoder.read(answers('end of thread 1', { result: {} }))).toEqual([{ type: 'stray' }]);
    expect(decoder.read(delta('late'))).toEqual([{ type: 'stray' }]);
  });

  it('never uses an earlier thread again', () => {
    const { thread, decoder } = answered();
    thread.renew();
    decoder.read(answers('end of thread 1', { result: {} }));
    expect(decoder.read(answers('thread 1', { result: threadResult }))).toEqual([]);
    expect(decoder.read(answers('thread 2', { result: threadResult }))).toMatchObject([{ type: 'turn-failed' }]);
  });

  it('is not one before its first turn, or in the middle of one', () => {
    const thread = new CodexThread(new Map());
    expect(thread.renew()).toBeNull();
    thread.write(plainTurn);
    expect(thread.renew()).toBeNull();
  });
});

describe('An interrupted codex', () => {
  const stopped = notifies('turn/completed', {
    threadId: 'thread-1',
    turn: { id: 'turn-1', status: 'interrupted', error: null },
  });
  const item = (type: string) =>
    notifies('item/started', { threadId: 'thread-1', turnId: 'turn-1', item: { type, id: 'item-2' } });

  it('drops the rest of the answer, and can be renewed at the end of the turn', () => {
    const { thread, decoder } = midTurn();
    decoder.read(delta('Hello'));
    expect(thread.interrupt()?.text).toContain(
      '"id":"interruption 1","method":"turn/interrupt","params":{"threadId":"thread-1","turnId":"turn-1"}',
    );
    expect(decoder.read(delta(' world') + answers('interruption 1', { result: {} }))).toEqual([]);
    expect(decoder.read(stopped)).toMatchObject([{ type: 'turn-end', text: null }]);
    expect(thread.renew()?.text).toContain('"threadId":"thread-1"');
  });

  it('that has ended its turn itself answers another request', () => {
    const { thread, decoder } = midTurn();
    decoder.read(failed({ message: 'The server had an error' }));
    expect(thread.interrupt()?.text).toContain('"id":"interruption 1","method":"account/read"');
    expect(decoder.read(answers('interruption 1', { result: {} }))).toMatchObject([{ type: 'turn-end' }]);
    expect(thread.renew()).not.toBeNull();
  });

  it.each([
    ['refuses', answers('interruption 1', { error: { code: 1, message: 'no' } })],
    ['ends another turn', stopped.replace('turn-1', 'turn-2')],
    ['runs a command', item('commandExecution')],
    ['requests anything', `${JSON.stringify({ id: 7, method: 'item/tool/call', params: {} })}\n`],
  ])('ends its process when it %s', (_, output) => {
    const { thread, decoder } = midTurn();
    thread.interrupt();
    expect(decoder.read(output)).toEqual(expect.arrayContaining([expect.objectContaining({ type: 'turn-failed' })]));
  });

  it('is not one before its turn has started', () => {
    const thread = new CodexThread(new Map());
    thread.write(plainTurn);
    expect(thread.interrupt()).toBeNull();
  });
});

describe('A message for a running codex', () => {
  const refused = (id: string) => answers(id, { error: { code: 1, message: 'no' } });

  const accepted = (id: string) => answers(id, { result: { turnId: 'turn-1' } });

  it('is given to the model or refused by its id, in any order', () => {
    const { thread, decoder } = midTurn();
    const [one, two] = [thread.add('ONE'), thread.add('TWO')];
    expect([one?.id, two?.id]).toEqual(['addition 1', 'addition 2']);
    expect(two?.input).toContain('"clientUserMessageId":"addition 2"');
    expect(decoder.read(input(null) + refused('addition 1') + input('addition 2') + accepted('addition 2'))).toEqual([
      { type: 'message-refused', id: 'addition 1' },
      { type: 'message-added', id: 'addition 2' },
    ]);
  });

  it('comes after the answer if codex accepts it while it completes the answer, and then answers again', () => {
    const { thread, decoder } = midTurn();
    decoder.read(input(null));
    thread.add('late');
    const whole = accepted('addition 1') + delta('One', 'm1') + message('One') + input('addition 1');
    expect(decoder.read(whole + delta('Two', 'm1') + message('Two') + completed)).toMatchObject([
      { type: 'text-delta', text: 'One' },
      { type: 'message-added', id: 'addition 1' },
      { type: 'text-delta', text: '\n\nTwo' },
      { type: 'turn-end', text: null },
    ]);
  });

  it.each([
    ['before its answer', ''],
    ['after its answer', accepted('addition 1')],
  ])('ends the process if the turn ends %s without it', (_, answer) => {
    const { thread, decoder } = midTurn();
    thread.add('late');
    const events = decoder.read(answer + delta('Hi') + message('Hi') + completed + accepted('addition 1'));
    expect(events.map(({ type }) => type)).toEqual(['text-delta', 'turn-end', 'stray']);
  });

  it('ends the process if the model calls a tool before it has the message', () => {
    const tools = [{ name: 'look', description: '', schema: '{}' }];
    const { thread, decoder } = midTurn({ ...plainTurn, offer: { tools, choice: 'auto', isParallel: true } });
    thread.add('late');
    const params = { threadId: 'thread-1', turnId: 'turn-1', callId: 'c1', tool: 'look', arguments: {} };
    const call = `${JSON.stringify({ id: 7, method: 'item/tool/call', params })}\n`;
    const events = decoder.read(accepted('addition 1') + call);
    expect(events.map(({ type }) => type)).toEqual(['call-start', 'call-delta', 'stray', 'turn-end']);
  });

  it('has the text before it dropped if codex asks the model again, because codex drops that text, too', () => {
    const { thread, decoder } = midTurn();
    thread.add('In German.');
    expect(decoder.read(delta('Good', 'm1'))).toEqual([]);
    const end = delta('Guten Tag', 'm2') + message('Guten Tag') + completed;
    expect(decoder.read(accepted('addition 1') + input('addition 1') + end)).toMatchObject([
      { type: 'message-added' },
      { type: 'text-delta', text: 'Guten Tag' },
      { type: 'turn-end', text: null },
    ]);
  });

  it('holds the text back only until codex refuses it, or the text is whole', () => {
    const one = midTurn();
    one.thread.add('late');
    expect(one.decoder.read(delta('Good ') + refused('addition 1') + delta('day'))).toEqual([
      { type: 'message-refused', id: 'addition 1' },
      { type: 'text-delta', text: 'Good ' },
      { type: 'text-delta', text: 'day' },
    ]);
    const two = midTurn();
    two.thread.add('late');
    expect(two.decoder.read(delta('Hi') + message('Hi') + completed)).toMatchObject([
      { type: 'text-delta', text: 'Hi' },
      { type: 'turn-end', text: null },
    ]);
  });

  it('may be refused after the end or an interruption, which proves nothing about the process', () => {
    const ended = midTurn();
    ended.thread.add('late');
    ended.decoder.read(delta('Hi') + completed);
    expect(ended.decoder.read(refused('addition 1'))).toEqual([]);
    const cut = midTurn();
    cut.thread.add('late');
    cut.thread.interrupt();
    expect(cut.decoder.read(refused('addition 1'))).toEqual([]);
  });
});

describe('The answer of codex', () => {
  it('is the streamed text, with its model and its tokens', () => {
    expect(eventsOf(delta('Good '), delta('day'), message('Good day'), tokens(20, 7), completed)).toEqual([
      { type: 'text-delta', text: 'Good ' },
      { type: 'text-delta', text: 'day' },
      {
        type: 'turn-end',
        text: null,
        model: 'gpt-5.5',
        usage: { inputTokens: 20, outputTokens: 7, costUsd: null, cacheReadTokens: 1, cacheWriteTokens: 0 },
      },
    ]);
  });

  it('is read however the lines are split', () => {
    const { decoder } = midTurn();
    const events = Array.from(delta('Grüße') + completed).flatMap((piece) => decoder.read(piece));
    expect(events.map(({ type }) => type)).toEqual(['text-delta', 'turn-end']);
  });

  it('has its messages separated, without one whose stream broke', () => {
    const [first, second] = [delta('One', 'm1') + message('One'), delta('Two', 'm2') + message('Two')];
    expect(eventsOf(first, second, completed).map((event) => ('text' in event ? event.text : null))).toEqual([
      'One',
      '\n\nTwo',
      null,
    ]);
    expect(eventsOf(delta('On', 'm1'), second, completed).at(-1)).toMatchObject({ type: 'turn-end', text: 'Two' });
  });

  it('is the last message alone if a value was requested', () => {
    const { decoder } = midTurn({ ...plainTurn, schema: '{"type":"object"}' });
    const events = decoder.read(message('Let me see.') + message('{"a":1}') + completed);
    expect(events).toMatchObject([{ type: 'turn-end', text: '{"a":1}' }]);
  });

  it('has begun when the model writes or thinks, not earlier', () => {
    const { decoder } = midTurn();
    decoder.read(begun('agentMessage') + begun('reasoning'));
    expect([decoder.hasBegun, decoder.isMidAnswer]).toEqual([false, true]);
    decoder.read(notifies('item/reasoning/textDelta', { threadId: 'thread-1', turnId: 'turn-1', delta: 'Hm' }));
    expect(decoder.hasBegun).toBe(true);
    decoder.read(delta('x') + completed);
    expect([decoder.hasBegun, decoder.isMidAnswer]).toEqual([false, false]);
  });

  it('counts only the tokens of its turn, although the program reports the sum', () => {
    const { thread, decoder } = midTurn();
    decoder.read(delta('x') + tokens(20, 7) + completed);
    thread.write(plainTurn);
    decoder.begin();
    const end = decoder.read(started + delta('x') + tokens(50, 9) + completed).at(-1);
    expect(end).toMatchObject({ usage: { inputTokens: 30, outputTokens: 2, cacheReadTokens: 0 } });
    decoder.begin();
    expect(decoder.read(started + delta('x') + completed).at(-1)).toMatchObject({ usage: { inputTokens: null } });
  });

  it('begins with the model that answers', () => {
    const { thread, decoder } = midTurn();
    decoder.read(delta('x') + completed);
    thread.write(plainTurn);
    decoder.begin();
    expect(decoder.read(started)).toEqual([{ type: 'model-named', model: 'gpt-5.5' }]);
  });

  it('names the model that replaced another', () => {
    const rerouted = notifies('model/rerouted', { threadId: 'thread-1', turnId: 'turn-1', toModel: 'gpt-6-sol' });
    expect(eventsOf(rerouted, delta('x'), completed).at(-1)).toMatchObject({ model: 'gpt-6-sol' });
  });

  it('ignores unknown lines', () => {
    expect(eventsOf('no JSON\n', '{"method":"item/agentMessage/delta","params":{}}\n', '{}\n', '[]\n')).toEqual([]);
  });
});

describe('A message that does not belong to the turn', () => {
  it.each([
    ['a part of another turn', deltaOf('turn-0')],
    ['another turn', started],
    ['what comes after the end', delta('x') + completed + delta('y')],
  ])('is a stray: %s', (_, lines) => {
    expect(eventsOf(lines).at(-1)).toEqual({ type: 'stray' });
  });

  it('fails the turn if codex does more than answer', () => {
    for (const type of ['commandExecution', 'fileChange', 'mcpToolCall', 'webSearch', 'a-tool-of-tomorrow']) {
      expect(eventsOf(begun(type))).toEqual([
        { type: 'stray' },
        { type: 'request-refused', request: 'tool' },
        {
          type: 'turn-failed',
          reason: 'other',
          message: expect.stringContaining('an action that the service does not allow'),
        },
      ]);
    }
    expect(reasonOf(begun('contextCompaction'))).toBe('prompt_too_long');
  });

  it.each([
    ['item/commandExecution/requestApproval', 'permission'],
    ['execCommandApproval', 'permission'],
    ['item/tool/call', 'tool'],
    ['fs/readFile', 'files'],
    ['item/tool/requestUserInput', 'other'],
    ['a/request/of/tomorrow', 'other'],
  ])('is a request that is refused: %s', (method, request) => {
    const [reply, refusal] = eventsOf(codexLines.asks(method));
    expect(reply).toEqual({ type: 'reply', text: expect.stringMatching(/^\{.*"id":7,"error":\{.*\}\}\n$/) });
    expect(refusal).toEqual({ type: 'request-refused', request });
  });
});

describe('A thread', () => {
  it('repeats the history it receives, which is no part of a turn', () => {
    const thread = new CodexThread(new Map());
    const decoder = new CodexDecoder(thread);
    thread.write({ ...plainTurn, history: [{ role: 'user', text: 'Before' }] });
    decoder.begin();
    decoder.read(answers('thread 1', { result: threadResult }));
    const item = { type: 'function_call', call_id: 'call_A', name: 'note', arguments: '{}' };
    const repeated = { threadId: 'thread-1', turnId: 'auto-compact-0', item };
    expect(decoder.read(notifies('rawResponseItem/completed', repeated))).toEqual([]);
    expect(decoder.read(started + delta('x') + completed).at(-1)).toMatchObject({ type: 'turn-end' });
  });

  it('is requested first, and gets its turn when it is open', () => {
    const decoder = new CodexDecoder(new CodexThread(new Map()));
    expect(decoder.read(answers('initialize', { result: {} }))).toEqual([]);
    const thread = new CodexThread(new Map());
    thread.write({ ...plainTurn, history: [{ role: 'user', text: 'Before' }] });
    const [reply] = new CodexDecoder(thread).read(answers('thread 1', { result: threadResult }));
    expect(reply).toMatchObject({ type: 'reply', text: expect.stringMatching(/inject_items.*\n.*turn\/start.*\n$/) });
  });

  it.each([
    ['sees instructions of the host', { ...threadResult, instructionSources: ['/etc/AGENTS.md'] }],
    ['may write files', { ...threadResult, sandbox: { type: 'workspaceWrite' } }],
    ['tells nothing of itself', {}],
  ])('is not used if it %s', (_, result) => {
    const thread = new CodexThread(new Map());
    thread.write(plainTurn);
    expect(new CodexDecoder(thread).read(answers('thread 1', { result }))).toMatchObject([{ type: 'turn-failed' }]);
    expect(() => thread.write(plainTurn)).toThrow('no thread');
  });

  it.each(['initialize', 'thread 1', 'history', 'turn'])('fails if codex rejects the request %s', (id) => {
    const [failure] = eventsOf(answers(id, { error: { code: -32600, message: 'it\u0007 is bad\nat line 1' } }));
    expect(failure).toMatchObject({
      reason: 'other',
      message: expect.stringMatching(/does not accept the .*: it is bad$/),
    });
  });
});

describe('A codex failure', () => {
  const withStatus = (httpStatusCode: number | null, additionalDetails = '') => ({
    message: 'Reconnecting... 1/5',
    codexErrorInfo: { responseStreamDisconnected: { httpStatusCode } },
    additionalDetails,
  });

  it.each([
    ['contextWindowExceeded', 'prompt_too_long'],
    ['usageLimitExceeded', 'quota'],
    ['serverOverloaded', 'overloaded'],
    ['modelNotFound', 'model_unknown'],
    ['badRequest', 'request_refused'],
    ['cyberPolicy', 'refused'],
    ['unauthorized', 'auth'],
    ['a-word-of-tomorrow', 'other'],
  ])('has the reason that its code names: %s', (codexErrorInfo, reason) => {
    expect(reasonOf(failed({ message: 'No.', codexErrorInfo, additionalDetails: null }))).toBe(reason);
  });

  it.each([
    [401, 'auth'],
    [403, 'auth'],
    [413, 'prompt_too_long'],
    [429, 'quota'],
    [500, 'other'],
    [503, 'overloaded'],
  ])('ends the turn immediately if no retry would help: %d', (status, reason) => {
    expect(reasonOf(retries(withStatus(status)))).toBe(reason);
  });

  it.each([
    ['a stream broke', withStatus(null, 'stream disconnected before completion')],
    ['a limit is over in seconds', withStatus(null, 'rate limit exceeded: Please try again in 1.5s.')],
    ['only a WebSocket is refused', withStatus(404, 'unexpected status 404: x, url: ws://127.0.0.1:1/v1/responses')],
  ])('is not reported yet if %s', (_, error) => {
    expect(eventsOf(retries(error))).toEqual([]);
  });

  it('is reported in one line, without the address of the API', () => {
    const details = 'unexpected status 401 Unauthorized: Wrong key, url: http://10.0.0.1/v1/responses';
    expect(eventsOf(retries(withStatus(401, details)))).toMatchObject([
      { message: 'the model CLI reports: unexpected status 401 Unauthorized: Wrong key' },
    ]);
    const answer = JSON.stringify({ error: { message: 'bad schema' } });
    expect(eventsOf(failed({ message: answer, codexErrorInfo: 'other' }))).toMatchObject([
      { message: 'the model CLI reports: bad schema' },
    ]);
    expect(eventsOf(failed(null))).toMatchObject([{ message: 'the model CLI reports' }]);
  });

  it.each([
    ['max_output_tokens', { isCutShort: true }],
    ['content_filter', { refusal: { category: null, explanation: null } }],
  ])('is the end of the answer if the API ended it early: %s', (why, end) => {
    const message = `Incomplete response returned, reason: ${why}`;
    const stream = { httpStatusCode: null };
    const retried = { message: 'Reconnecting... 1/5', additionalDetails: message };
    for (const error of [
      retries({ ...retried, codexErrorInfo: { responseStreamDisconnected: stream } }),
      failed({ message, codexErrorInfo: 'other' }),
    ]) {
      expect(eventsOf(codexLines.delta('Once upon'), error)).toMatchObject([
        { type: 'text-delta', text: 'Once upon' },
        { type: 'stray' }, // the process is not reused
        { type: 'turn-end', text: null, model: 'gpt-5.5', ...end },
      ]);
    }
  });

  it.each([
    ['a name', 'account', { message: 'No.', codexErrorInfo: 'unauthorized' }],
    ['401', 'account', withStatus(401)],
    ['403, which may be about the request', undefined, withStatus(403)],
    ['words', undefined, { message: 'Missing environment variable: `KEY`.', codexErrorInfo: 'other' }],
  ])('of the login is about the account only if its code indicates the account: %s', (_, scope, error) => {
    const [failure] = eventsOf(failed(error));
    expect(failure).toMatchObject({ type: 'turn-failed', reason: 'auth' });
    expect(failure?.type === 'turn-failed' && failure.scope).toBe(scope);
  });

  it('is not classified by words of the request, and as a quota only by a code', () => {
    const error = { message: 'Do not say "rate limit"', codexErrorInfo: 'other' };
    const { decoder } = midTurn({ ...plainTurn, text: 'What is a Rate-Limit?' });
    expect(decoder.read(failed(error))).toMatchObject([{ type: 'turn-failed', reason: 'other' }]);
    const [inWords] = eventsOf(failed(error));
    expect(inWords).toMatchObject({ reason: 'quota' });
    expect(inWords).not.toHaveProperty('quota');
  });

  it('is an unknown model if its thread cannot be opened with that model', () => {
    const thread = new CodexThread(new Map());
    thread.write({ ...plainTurn, model: 'api-key' });
    const refusal = answers('thread 1', { error: { code: -32600, message: 'unknown model api-key: 401' } });
    expect(new CodexDecoder(thread).read(refusal)).toMatchObject([{ type: 'turn-failed', reason: 'model_unknown' }]);
  });

  it('of an exhausted subscription includes the reset time', () => {
    const limit = failed({ message: 'You have hit it', codexErrorInfo: 'usageLimitExceeded' });
    const quotaOf = (...lines: readonly string[]) => eventsOf(...lines, limit).at(-1);
    expect(quotaOf(limits(100, 5000))).toMatchObject({ quota: { scope: 'account', resetsAt: 5_000_000 } });
    expect(quotaOf(limits(40, 5000))).toMatchObject({ quota: { scope: 'account', resetsAt: null } });
    expect(eventsOf(retries(withStatus(429)))).toMatchObject([{ quota: { scope: 'model', resetsAt: null } }]);
    const ofModel = (...lines: readonly string[]) =>
      midTurn({ ...plainTurn, model: 'big' })
        .decoder.read([...lines, limit].join(''))
        .at(-1);
    expect(ofModel(limits(40, 5000))).toMatchObject({ quota: { scope: 'model', resetsAt: null } });
    expect(ofModel(limits(100, 5000))).toMatchObject({ quota: { scope: 'account', resetsAt: 5_000_000 } });
  });

  it('is an empty answer if the model wrote nothing, and a crash if the program exited', () => {
    expect(reasonOf(completed)).toBe('empty_answer');
    const { decoder } = midTurn();
    expect(decoder.exit({ code: 1, signal: null, stderr: 'bad' })).toMatchObject([
      { reason: 'crashed', stderr: 'bad' },
    ]);
    expect(midTurn().decoder.exit({ code: null, signal: 'SIGKILL', stderr: '' })).toMatchObject([
      { reason: 'crashed' },
    ]);
  });
});

describe('The limits of an account', () => {
  it.each([
    [40, 'allowed'],
    [92, 'warning'],
    [100, 'rejected'],
  ])('are passed on whenever codex reports them: %d percent', (percent, status) => {
    const windows = [{ name: 'five_hour', status, utilization: percent / 100, resetsAt: 9000 }];
    expect(eventsOf(limits(percent, 9))).toEqual([{ type: 'quota-report', windows }]);
  });

  it('do not exist with an API key', () => {
    const none = { primary: null, secondary: null, credits: null };
    expect(eventsOf(notifies('account/rateLimits/updated', { rateLimits: none }))).toEqual([]);
  });
});

const thoughtDelta = (text: string) => ({ type: 'thought-delta', text });
const end = { type: 'thought-end' };

describe('A thought of codex', () => {
  it('is streamed piece by piece, with a blank line between the parts of its summary', () => {
    const thought = new CodexThought();
    const events = [
      ...thought.addPiece('summary', 0, 'Read'),
      ...thought.addPiece('summary', 0, 'ing'),
      ...thought.addPiece('summary', 1, 'Answering'),
      ...thought.complete(['Reading', 'Answering'], []),
    ];
    expect(events).toEqual([thoughtDelta('Read'), thoughtDelta('ing'), thoughtDelta('\n\nAnswering'), end]);
  });

  it('is sent once if the program streams it in two forms', () => {
    const thought = new CodexThought();
    const events = [
      ...thought.addPiece('content', 0, 'Hm'),
      ...thought.addPiece('summary', 0, 'Thinking'),
      ...thought.complete([], []),
    ];
    expect(events).toEqual([thoughtDelta('Hm'), end]);
  });

  it('is sent at its end if it was not streamed', () => {
    const thought = new CodexThought();
    expect(thought.complete(['Reading', 'Answering'], ['Hm'])).toEqual([thoughtDelta('Reading\n\nAnswering'), end]);
    expect(thought.complete([], ['Hm'])).toEqual([thoughtDelta('Hm'), end]);
    expect(thought.complete([], [])).toEqual([end]);
  });

  it('starts afresh after another one', () => {
    const thought = new CodexThought();
    thought.addPiece('summary', 3, 'one');
    thought.complete(['one'], []);
    expect(thought.addPiece('content', 0, 'two')).toEqual([thoughtDelta('two')]);
  });
});
