"""The classes of this package in the factories of DLIO."""

from dlio_benchmark.checkpointing.checkpointing_factory import CheckpointingFactory
from dlio_benchmark.common.enumerations import CheckpointMechanismType, StorageType
from dlio_benchmark.data_generator.generator_factory import GeneratorFactory
from dlio_benchmark.reader.reader_factory import ReaderFactory
from dlio_benchmark.storage.storage_factory import StorageFactory
from dlio_benchmark.utils.config import ConfigArguments

#: The value of `storage.storage_type`.
NAME = "smb"


def install():
    """Adds the storage type, and replaces the functions of the factories."""
    if NAME in StorageType._value2member_map_:
        return
    _add_storage_type()
    for factory, name, replacement in (
        (StorageFactory, "get_storage", _storage),
        (ReaderFactory, "get_reader", _reader),
        (GeneratorFactory, "get_generator", _generator),
        (CheckpointingFactory, "get_mechanism", _mechanism),
    ):
        setattr(factory, name, staticmethod(replacement(getattr(factory, name))))


def _add_storage_type():
    """Adds the member `StorageType.SMB`. The class Enum has no function for it."""
    member = object.__new__(StorageType)
    member._name_, member._value_ = NAME.upper(), NAME
    StorageType._member_names_.append(member._name_)
    StorageType._member_map_[member._name_] = member
    StorageType._value2member_map_[NAME] = member


def _is_smb():
    return ConfigArguments.get_instance().storage_type == StorageType(NAME)


def _storage(original):
    def get_storage(storage_type, namespace, framework=None):
        if storage_type != StorageType(NAME):
            return original(storage_type, namespace, framework)
        from .storage import SmbStorage

        return SmbStorage(namespace, framework)

    return get_storage


def _reader(original):
    def get_reader(type, dataset_type, thread_index, epoch_number):
        if ConfigArguments.get_instance().reader_class is not None or not _is_smb():
            return original(type, dataset_type, thread_index, epoch_number)
        from . import batches, readers

        batches.install()
        return readers.reader_class(type)(dataset_type, thread_index, epoch_number)

    return get_reader


def _generator(original):
    def get_generator(type):
        if not _is_smb():
            return original(type)
        from . import generators

        return generators.over_smb(original, type)

    return get_generator


def _mechanism(original):
    def get_mechanism(mechanism):
        is_custom = ConfigArguments.get_instance().checkpoint_mechanism_class is not None
        if is_custom or not _is_smb() or mechanism != CheckpointMechanismType.PT_SAVE:
            return original(mechanism)
        from .checkpoints import SmbPyTorchCheckpointing

        return SmbPyTorchCheckpointing.get_instance()

    return get_mechanism
