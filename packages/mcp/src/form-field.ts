/** One field of a form that a server wants filled in: how a person is asked for it, and how the answer is read. */
import type { ApprovalQuestion, JsonObject, JsonValue } from '@lousho/contract';

export interface FormField {
  readonly name: string;
  readonly schema: JsonObject;
  readonly isRequired: boolean;
}
export type ReadField =
  { readonly ok: true; readonly value: JsonValue } | { readonly ok: false; readonly problem: string };

/** Stands for "nothing" where a field may be left out: a question has no empty answer. */
const LEFT_OUT = '-';

export function fieldQuestion(message: string, { name, schema, isRequired }: FormField): ApprovalQuestion {
  const { title, description } = schema;
  const label = typeof title === 'string' ? title : name;
  const about = typeof description === 'string' ? `: ${description}` : '';
  const hints = [...typeHint(schema), ...(isRequired ? [] : [`optional, "${LEFT_OUT}" leaves it out`])];
  const text = `${message}\n${label}${about}${hints.length === 0 ? '' : ` (${hints.join('; ')})`}`;
  const choices = choicesOf(schema);
  if (choices === undefined) return { text };
  const options = choices.map(({ shown }) => shown);
  return { text, options: isRequired ? options : [...options, LEFT_OUT], allowFreeText: false };
}

export function readField({ schema, isRequired }: FormField, answer: string): ReadField {
  const given = answer.trim();
  if (!isRequired && given === LEFT_OUT) return { ok: true, value: null };
  const choices = choicesOf(schema);
  if (choices !== undefined) return readChoice(choices, given);
  switch (schema.type) {
    case 'number':
    case 'integer': {
      const value = Number(given);
      const fits = schema.type === 'integer' ? Number.isInteger(value) : Number.isFinite(value);
      return fits ? { ok: true, value } : { ok: false, problem: `"${given}" is no ${schema.type}.` };
    }
    case 'array':
      return readSeveral(schema, given);
    default:
      return { ok: true, value: answer };
  }
}

interface Choice {
  readonly shown: string;
  readonly value: JsonValue;
}

/** `undefined`: anything may be written. */
function choicesOf(schema: JsonObject): readonly Choice[] | undefined {
  if (schema.type === 'boolean')
    return [
      { shown: 'yes', value: true },
      { shown: 'no', value: false },
    ];
  return schema.type === 'array' ? undefined : listed(schema);
}

function listed({ enum: values, oneOf, anyOf }: JsonObject): readonly Choice[] | undefined {
  if (Array.isArray(values)) return values.map((value: JsonValue) => ({ shown: shownAs(value), value }));
  const titled = oneOf ?? anyOf;
  if (!Array.isArray(titled)) return undefined;
  return titled.map((one: JsonValue) => {
    const { const: value = null, title = value } = one as JsonObject;
    return { shown: shownAs(title), value };
  });
}

function shownAs(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function readChoice(choices: readonly Choice[], given: string): ReadField {
  const same = (shown: string): boolean => shown.trim().toLowerCase() === given.toLowerCase();
  const chosen = choices.find(({ shown }) => same(shown));
  return chosen === undefined
    ? { ok: false, problem: `"${given}" is none of: ${choices.map(({ shown }) => shown).join(', ')}.` }
    : { ok: true, value: chosen.value };
}

function readSeveral({ items }: JsonObject, given: string): ReadField {
  const choices = listed((items ?? {}) as JsonObject);
  const values: JsonValue[] = [];
  for (const word of given.split(',').map((part) => part.trim())) {
    const read = choices === undefined ? { ok: true as const, value: word } : readChoice(choices, word);
    if (!read.ok) return read;
    values.push(read.value);
  }
  return { ok: true, value: values };
}

function typeHint({ type, items }: JsonObject): readonly string[] {
  if (type === 'number' || type === 'integer') return [type];
  if (type !== 'array') return [];
  const choices = listed((items ?? {}) as JsonObject);
  const among = choices === undefined ? '' : ` of ${choices.map(({ shown }) => shown).join(' | ')}`;
  return [`one or several${among}, separated by commas`];
}
