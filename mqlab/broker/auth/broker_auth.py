"""Access control of a broker: its users and rules, and who looks at each request."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from mqlab.auth.acl import CUSTOM, Acl, Policy, Resource, check_acl
from mqlab.auth.auth_config import AuthConfig, whitelist
from mqlab.auth.authentication import authenticate, check_username, context_of_command
from mqlab.auth.authorization import authorize
from mqlab.auth.errors import AuthenticationException, AuthorizationException
from mqlab.auth.remoting_needs import needs_of_command
from mqlab.auth.session_credentials import ACCESS_KEY, AclClientRPCHook
from mqlab.auth.user import ENABLE, NORMAL, SUPER, User, check_user, key_bytes, user_of_subject
from mqlab.broker.auth.auth_tables import AclTable, UserTable
from mqlab.errors import LearnerError
from mqlab.protocol.codes import ResponseCode
from mqlab.remoting import AbortProcessException, RPCHook

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.protocol.command import RemotingCommand


class BrokerAuth:
    """Who may do what at a broker.

    Java: org.apache.rocketmq.auth.authentication.manager.AuthenticationMetadataManagerImpl and
    org.apache.rocketmq.auth.authorization.manager.AuthorizationMetadataManagerImpl. Each broker has its own users and
    rules, as in RocketMQ: a slave does not get its master's.
    """

    def __init__(self, broker: BrokerParts, config: AuthConfig | None) -> None:
        self._broker = broker
        self.config = config or AuthConfig()
        path = broker.message_store_config.path("config")
        self._user_table = UserTable(broker.node, f"{path}/users.json")
        self._acl_table = AclTable(broker.node, f"{path}/acls.json")
        for table in (self._user_table, self._acl_table):
            table.load_or_fail()
        for user in self._first_users():
            if self.user(user.username) is None:
                self.create_user(user)

    def _first_users(self) -> list[User]:
        """The two users that settings name (AuthenticationMetadataManagerImpl.initUser)."""
        init, inner = self.config.init_user, self.config.inner_credentials
        users = [] if init is None else [init]
        return users if inner is None else [*users, User(inner.access_key, inner.secret_key, SUPER)]

    def guard(self) -> None:
        """Look at each request from now on, as the settings say, and sign what the broker asks of others.

        LearnerError when nobody could ever be let in.
        """
        config, broker = self.config, self._broker
        credentials = config.inner_credentials
        if credentials is not None:
            broker.broker_outer_api.remoting_client.rpc_hooks.append(AclClientRPCHook(credentials))
        if not config.authentication_enabled:
            return
        if not self._user_table.users:
            raise LearnerError(
                f"{broker.node.name} asks for signatures and has no users, so nobody could ever come in",
                'set init_authentication_user (initAuthenticationUser) to {"username":"...","password":"..."}',
            )
        broker.remoting_server.rpc_hooks.append(RequestPipeline(self, broker.broker_config.broker_cluster_name))

    # -- users ------------------------------------------------------------------------------------------------------

    def user(self, username: str | None) -> User | None:
        """The user of this name; AuthenticationException when none is given."""
        if not (username or "").strip():
            raise AuthenticationException("username can not be blank")
        return self._user_table.users.get(username or "")

    def users(self, name_filter: str | None) -> list[User]:
        """All users whose names hold a text."""
        users = self._user_table.users
        wanted = _wanted(name_filter)
        return [users[name] for name in sorted(users, key=key_bytes) if wanted in name]

    def put_user(self, user: User) -> None:
        """Add a user, or change what is given of one who is there."""
        if user.username in self._user_table.users:
            self.update_user(user)
        else:
            self.create_user(user)

    def create_user(self, user: User) -> None:
        """Add a user: a normal one who is let in, unless said otherwise. AuthenticationException if he is there."""
        check_user(user, is_new=True)
        if self.user(user.username) is not None:
            raise AuthenticationException("The user is existed")
        self._user_table.users[user.username] = User(
            user.username, user.password, user.user_type or NORMAL, user.user_status or ENABLE
        )
        self._user_table.persist()

    def update_user(self, user: User) -> None:
        """Change what is given of a user; AuthenticationException if he is not there."""
        check_user(user, is_new=False)
        old = self.user(user.username)
        if old is None:
            raise AuthenticationException("The user is not exist")
        self._user_table.users[user.username] = User(
            old.username,
            user.password if user.password.strip() else old.password,
            user.user_type or old.user_type,
            user.user_status or old.user_status,
        )
        self._user_table.persist()

    def delete_user(self, username: str) -> None:
        """Remove a user and all rules for him."""
        user = self._user_table.users.pop(username, None)
        self._user_table.persist()
        if user is not None and self._acl_table.acls.pop(user.subject, None) is not None:
            self._acl_table.persist()

    def is_not_super_user_login(self, request: RemotingCommand) -> bool:
        """Whether a request was signed by somebody who is no super user; what nobody has signed is not.

        Java: org.apache.rocketmq.broker.processor.AdminBrokerProcessor.isNotSuperUserLogin.
        """
        access_key = request.ext_field(ACCESS_KEY)
        if not access_key:
            return False
        user = self.user(access_key)
        if user is None:
            raise AuthenticationException(f"User:{access_key} is not found")
        return not user.is_super

    # -- rules ------------------------------------------------------------------------------------------------------

    def _check_subject(self, subject: str, text: str) -> None:
        if self.user(user_of_subject(subject)) is None:
            raise AuthorizationException(text)

    def acl(self, subject: str) -> Acl | None:
        """The rules for a subject; AuthorizationException if there is no such subject."""
        self._check_subject(subject, "The subject is not exist.")
        return self._acl_table.acls.get(subject)

    def acls(self, subject_filter: str | None, resource_filter: str | None) -> list[Acl]:
        """The rules for all subjects that hold a text, about resources that hold another.

        As in RocketMQ a resource filter that the subject holds chooses nothing.
        """
        acls = self._acl_table.acls
        subject_text, resource_text = _wanted(subject_filter), _wanted(resource_filter)
        found = []
        for subject in sorted(acls, key=key_bytes):
            if subject_text not in subject:
                continue
            wanted = "" if resource_text in subject else resource_text
            policies = []
            for policy in acls[subject].policies:
                entries = [entry for entry in policy.entries if wanted in entry.about.key]
                if entries:
                    policies.append(Policy(policy.policy_type, entries))
            if policies:
                found.append(Acl(subject, policies))
        return found

    def update_acl(self, acl: Acl) -> None:
        """Add rules for a subject, in the place of those about the same resources; policies without rules are none.

        AuthorizationException for a rule that cannot be understood, or a subject that is not there.
        """
        new = Acl(acl.subject, deepcopy([policy for policy in acl.policies if policy.entries]))
        check_acl(new)
        assert new.subject is not None, "check_acl() refuses rules for nobody"
        self._check_subject(new.subject, f"The subject of {new.subject} is not exist.")
        old = self._acl_table.acls.setdefault(new.subject, Acl(new.subject))
        old.update_policies(new.policies)
        self._acl_table.persist()

    def delete_acl(self, subject: str, policy_type: str | None, resource: Resource | None) -> None:
        """Remove the rule about a resource (of the custom policy unless said otherwise), or all rules for a subject."""
        self._check_subject(subject, "The subject is not exist.")
        acl = self._acl_table.acls.get(subject)
        if acl is None:
            raise AuthorizationException("The acl is not exist.")
        if resource is not None:
            acl.delete_policy(policy_type or CUSTOM, resource.key)
        if resource is None or not acl.policies:
            del self._acl_table.acls[subject]
        self._acl_table.persist()


def _wanted(text: str | None) -> str:
    """What a filter looks for; a blank one for "", which is in every text."""
    return text if text and text.strip() else ""


class RequestPipeline(RPCHook):
    """Lets nobody's request pass who is not known, or may not do it: response code 16 (NO_PERMISSION).

    Java: org.apache.rocketmq.broker.auth.pipeline.AuthenticationPipeline and AuthorizationPipeline.
    """

    def __init__(self, auth: BrokerAuth, cluster_name: str) -> None:
        self._auth = auth
        self._cluster_name = cluster_name
        self._known = whitelist(auth.config.authentication_whitelist)
        self._allowed = whitelist(auth.config.authorization_whitelist)

    def do_before_request(self, remote_address: str, request: RemotingCommand) -> None:
        """AbortProcessException for a request that is refused."""
        try:
            self._evaluate(remote_address.rpartition(":")[0], request)
        except (AuthenticationException, AuthorizationException) as error:
            raise AbortProcessException(int(ResponseCode.NO_PERMISSION), str(error)) from None

    def _evaluate(self, source_ip: str, request: RemotingCommand) -> None:
        context = context_of_command(request)
        if context.rpc_code not in self._known:
            authenticate(context, self._auth.user(check_username(context)))
        if not self._auth.config.authorization_enabled or context.rpc_code in self._allowed:
            return
        needs = needs_of_command(request, self._cluster_name)
        if needs:
            user = self._auth.user(context.username) if context.username else None
            acl = None if user is None else self._auth.acl(user.subject)
            authorize(needs, context.username, user, acl, source_ip)
