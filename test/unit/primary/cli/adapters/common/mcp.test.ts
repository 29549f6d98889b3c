import { callResult, serverInfo } from '../../../../../../src/primary/cli/adapters/common/mcp.js';

it('A tool result in the form of an MCP server has texts and images at their places, and no empty text', () => {
  const images = [
    { mediaType: 'image/png', data: 'AAAA', at: 0 },
    { mediaType: 'image/gif', data: 'BBBB', at: 1 },
  ] as const;
  expect(callResult({ id: 'a', text: 'x', images, isError: true })).toEqual({
    content: [
      { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      { type: 'text', text: 'x' },
      { type: 'image', data: 'BBBB', mimeType: 'image/gif' },
    ],
    isError: true,
  });
  expect(callResult({ id: 'a', text: '', isError: false })).toEqual({ content: [], isError: false });
});

it('The introduction of the MCP server uses the protocol version of the program, and offers only tools', () => {
  expect(serverInfo('2025-06-18')).toMatchObject({ protocolVersion: '2025-06-18', capabilities: { tools: {} } });
});
