/** Stores the language that a person chose. */
import { type BoundStatement, statement } from '../../database/store.ts';
import type { Language } from '../../language/language.ts';

const setLanguageSql = statement('set-user-language', 'UPDATE users SET language = $2 WHERE id = $1');

export function setLanguageStatement(userId: string, language: Language): BoundStatement {
  return { statement: setLanguageSql, parameters: [userId, language] };
}
