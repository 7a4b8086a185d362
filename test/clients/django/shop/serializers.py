from rest_framework import serializers

from shop.models import Line, Order


class LineSerializer(serializers.ModelSerializer):
    id = serializers.CharField(read_only=True)
    order = serializers.PrimaryKeyRelatedField(queryset=Order.objects.all(), pk_field=serializers.CharField())

    class Meta:
        model = Line
        fields = ['id', 'order']
