/** A checkpoint with fields that no release knows, at every level, and with keys and values that careless code loses. */
import { deepFreeze, type Checkpoint, type JsonValue } from '@lousho/contract';

/** Read from JSON text: only so is `__proto__` a member of its own. */
const STRANGE = `{
  "future": { "deep": [1, null, { "list": [[], {}] }] },
  "__proto__": { "polluted": true },
  "constructor": "c", "toString": "t", "": "empty key", "a.b": 1, "ключ": "значение",
  "numbers": [0, -1, 0.1, 1e21, 9007199254740992, 5e-324],
  "texts": ["", "\\u0000\\u001f", "\\u2028\\u2029", "\\ud83d\\udcda", "e\\u0301", "'\\"\\\\\`", "NaN", "null"],
  "empty": null
}`;

export const STRANGE_VALUES: JsonValue = deepFreeze(JSON.parse(STRANGE) as JsonValue);

export function withUnknownFields(checkpoint: Checkpoint): Checkpoint {
  const strange = JSON.parse(STRANGE) as object;
  const { usage, messages } = checkpoint;
  const [byModel] = Object.entries(usage.byModel);
  const extended = {
    ...addTo(checkpoint, strange),
    messages: messages.map((message) => {
      const parts =
        typeof message.content === 'string'
          ? message.content
          : message.content.map((part) => addTo(part, strange));
      return { ...addTo(message, strange), content: parts };
    }),
    usage: {
      ...addTo(usage, strange),
      ...(byModel && { byModel: { [byModel[0]]: addTo(byModel[1], strange) } }),
    },
    businessState: strange,
    metadata: strange,
    principal: addTo({ id: 'user-7' }, strange),
    settledResults: checkpoint.settledResults.map((result) => ({
      ...addTo(result, strange),
      result: strange,
    })),
    startedToolCallIds: ['call_1'],
    lastError: addTo({ name: 'Error', message: 'It failed.', retryable: true }, strange),
    approvals: [
      addTo(
        { id: 'a-1', kind: 'tool', toolCallId: 'call_1', argsHash: '', createdAt: checkpoint.savedAt },
        strange,
      ),
    ],
  };
  return deepFreeze(JSON.parse(JSON.stringify(extended)) as Checkpoint);
}

/** Not a spread over both: `__proto__` must stay a member. */
function addTo<Value extends object>(value: Value, more: object): Value {
  return Object.fromEntries([...Object.entries(more), ...Object.entries(value)]) as Value;
}
