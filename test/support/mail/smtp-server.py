"""A mail server (aiosmtpd of Debian) for tests. Writes a JSON line when it listens, and one for each mail that it takes.

Arguments: a JSON object. certFile and keyFile: offers STARTTLS, and asks for a name and a password after it. port: 0 takes any.
Recipients "unknown@..." are refused for good; "busy@..." are refused once and then taken.
"""
import asyncio
import email
import email.policy
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

options = json.loads(sys.argv[1])
was_busy = set()


def tell(value):
    print(json.dumps(value), flush=True)


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):
        if address.startswith("unknown@"):
            return "550 5.1.1 No such mailbox"
        if address.startswith("busy@") and address not in was_busy:
            was_busy.add(address)
            return "451 4.2.1 Try again later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        tell({
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "subject": str(message["subject"]),
            "messageId": str(message["message-id"]),
            "text": message.get_body(("plain",)).get_content().replace("\r\n", "\n"),
            "html": message.get_body(("html",)).get_content(),
            "isEncrypted": session.ssl is not None,
        })
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    is_right = (data.login, data.password) == (b"trivet", b"secret")
    return AuthResult(success=is_right, handled=False)


def create_session():
    if "certFile" not in options:
        return SMTP(Handler())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(options["certFile"], options["keyFile"])
    return SMTP(Handler(), tls_context=context, require_starttls=True, auth_required=True, authenticator=authenticate)


async def main():
    server = await asyncio.get_running_loop().create_server(create_session, "127.0.0.1", options.get("port", 0))
    tell({"port": server.sockets[0].getsockname()[1]})
    await server.serve_forever()


asyncio.run(main())
