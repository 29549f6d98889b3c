import {
  methodNotFound,
  rpcFailure,
  rpcMessage,
  rpcNotification,
  rpcRequest,
  rpcResult,
} from '../../../../src/features/protocols/json-rpc.js';

describe('A line of JSON-RPC', () => {
  it.each([
    [
      '{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":1}}',
      { type: 'request', id: 7, method: 'm', params: { a: 1 } },
    ],
    ['{"id":"x","method":"m"}', { type: 'request', id: 'x', method: 'm', params: undefined }],
    ['{"method":"m","params":[]}', { type: 'notification', method: 'm', params: [] }],
    ['{"id":0,"result":null}', { type: 'result', id: 0, result: null }],
    [
      '{"id":1,"error":{"code":-32000,"message":"no","data":{"d":1}}}',
      {
        type: 'error',
        id: 1,
        error: { code: -32000, message: 'no', data: { d: 1 } },
      },
    ],
    ['{"id":null,"error":{"code":-32700}}', { type: 'error', id: null, error: { code: -32700, message: '' } }],
    ['{"id":null,"method":"m"}', { type: 'request', id: null, method: 'm', params: undefined }],
    ['{"id":1,"error":{"code":"E4","message":"no"}}', { type: 'error', id: 1, error: { code: 0, message: 'no' } }],
    ['{"id":1,"error":"no"}', { type: 'error', id: 1, error: { code: 0, message: 'no' } }],
    ['{"id":1,"result":2,"error":null}', { type: 'result', id: 1, result: 2 }],
    ['{"id":1}', { type: 'result', id: 1, result: undefined }],
  ])('is parsed: %s', (line, message) => {
    expect(rpcMessage(line)).toEqual(message);
  });

  it.each(['', 'Loading the model…', '[]', '{}', 'null', '{"result":1}', '{"id":{},"method":"m"}'])(
    'is not recognized: %j',
    (line) => {
      expect(rpcMessage(line)).toBeNull();
    },
  );

  it('is written in the form in which it is read', () => {
    const lines = [
      rpcRequest(1, 'm', { a: '\n' }),
      rpcNotification('n'),
      rpcResult('x', {}),
      rpcFailure(2, methodNotFound, 'no'),
    ];
    expect(lines.every((line) => line.indexOf('\n') === line.length - 1)).toBe(true);
    expect(lines.map(rpcMessage)).toEqual([
      { type: 'request', id: 1, method: 'm', params: { a: '\n' } },
      { type: 'notification', method: 'n', params: undefined },
      { type: 'result', id: 'x', result: {} },
      { type: 'error', id: 2, error: { code: -32601, message: 'no' } },
    ]);
  });
});
